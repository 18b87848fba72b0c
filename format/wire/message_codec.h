// Encoder and decoder of the messages in messages.h, both derived from their Visit() functions.
//
// What is written equals what libprotobuf writes for the same message (tests/conformance compares
// them byte for byte). Encoding goes into memory of the caller and allocates nothing; it is safe in
// signal handlers. Decoding yields views into its input; it allocates only where a message holds a
// std::vector, and never more elements than `max_elements` allows. Its input is hostile: a failure
// is `false`, never more. Fields and event bodies that this version does not know are skipped. The
// schema has no recursive message, so the depth of nesting is bounded by the schema.
#ifndef DEJA_FORMAT_WIRE_MESSAGE_CODEC_H_
#define DEJA_FORMAT_WIRE_MESSAGE_CODEC_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "format/wire/messages.h"
#include "format/wire/wire.h"

namespace deja::format {

// Elements of all std::vector fields of one decoded message, nested ones included. An element takes
// at least one byte of input and at most a few hundred of memory. So this bounds the memory that a
// small hostile message can make a reader allocate.
inline constexpr size_t kDefaultMaxElements = 1 << 20;

namespace internal {

template <typename T>
inline constexpr bool kIsSequence = false;
template <typename T>
inline constexpr bool kIsSequence<std::vector<T>> = true;
template <typename T, size_t N>
inline constexpr bool kIsSequence<InlineVec<T, N>> = true;
template <typename T>
inline constexpr bool kIsVector = false;
template <typename T>
inline constexpr bool kIsVector<std::vector<T>> = true;

template <typename T>
inline constexpr bool kIsScalar = std::is_integral_v<T> || std::is_same_v<T, double>;
template <typename T>
inline constexpr bool kIsText = std::is_same_v<T, std::string_view> || std::is_same_v<T, Hash128>;

template <typename T>
constexpr WireType ScalarType() {
  return std::is_same_v<T, double> ? WireType::kFixed64 : WireType::kVarint;
}

// The bits that go on the wire; zero exactly when proto3 leaves the field out.
template <typename T>
constexpr uint64_t ScalarBits(T value) {
  if constexpr (std::is_same_v<T, double>) {
    return std::bit_cast<uint64_t>(value);
  } else if constexpr (std::is_signed_v<T> && !std::is_same_v<T, bool>) {
    return ZigZag(value);
  } else {
    return static_cast<uint64_t>(value);
  }
}

template <typename T>
constexpr T ScalarFromBits(uint64_t bits) {
  if constexpr (std::is_same_v<T, double>) {
    return std::bit_cast<double>(bits);
  } else if constexpr (std::is_same_v<T, bool>) {
    return bits != 0;
  } else if constexpr (std::is_same_v<T, int32_t>) {
    return static_cast<int32_t>(UnZigZag(bits & 0xffffffffu));
  } else if constexpr (std::is_signed_v<T>) {
    return UnZigZag(bits);
  } else {
    return static_cast<T>(bits);  // 32-bit fields keep the low bits, as protobuf does
  }
}

inline std::string_view TextOf(std::string_view text) {
  return text;
}
inline std::string_view TextOf(const Hash128& hash) {
  if (hash.IsZero()) return {};
  return {reinterpret_cast<const char*>(hash.bytes.data()), hash.bytes.size()};
}

template <typename Sequence>
size_t PackedSize(const Sequence& values) {
  size_t size = 0;
  for (const auto& value : values) size += VarintSize(ScalarBits(value));
  return size;
}

}  // namespace internal

template <typename M>
size_t EncodedSize(const M& message);

namespace internal {

struct SizeVisitor {
  size_t size = 0;

  template <typename T>
  void operator()(uint32_t field, const T& value) {
    const size_t tag = VarintSize(static_cast<uint64_t>(field) << 3);
    if constexpr (kIsScalar<T>) {
      const uint64_t bits = ScalarBits(value);
      if (bits == 0) return;
      size += tag + (std::is_same_v<T, double> ? sizeof(double) : VarintSize(bits));
    } else if constexpr (kIsText<T>) {
      const size_t length = TextOf(value).size();
      if (length != 0) AddBytes(tag, length);
    } else if constexpr (kIsSequence<T>) {
      using Element = typename T::value_type;
      if constexpr (kIsScalar<Element>) {
        if (!value.empty()) AddBytes(tag, PackedSize(value));
      } else if constexpr (kIsText<Element>) {
        for (const auto& element : value) AddBytes(tag, TextOf(element).size());
      } else {
        for (const auto& element : value) AddBytes(tag, EncodedSize(element));
      }
    } else {
      const size_t length = EncodedSize(value);
      if (length != 0) AddBytes(tag, length);
    }
  }

  void AddBytes(size_t tag, size_t length) { size += tag + VarintSize(length) + length; }
};

// `Writer` is WireWriter or UncheckedWireWriter.
template <typename Writer>
struct WriteVisitor {
  Writer& out;

  template <typename T>
  void operator()(uint32_t field, const T& value) {
    if constexpr (kIsScalar<T>) {
      const uint64_t bits = ScalarBits(value);
      if (bits == 0) return;
      out.Tag(field, ScalarType<T>());
      if constexpr (std::is_same_v<T, double>) {
        out.Fixed64(bits);
      } else {
        out.Varint(bits);
      }
    } else if constexpr (kIsText<T>) {
      const std::string_view text = TextOf(value);
      if (!text.empty()) Text(field, text);
    } else if constexpr (kIsSequence<T>) {
      using Element = typename T::value_type;
      static_assert(!std::is_same_v<Element, double>, "packed doubles are not in the schema");
      if constexpr (kIsScalar<Element>) {
        if (value.empty()) return;
        out.Tag(field, WireType::kBytes);
        out.Varint(PackedSize(value));
        for (const auto& element : value) out.Varint(ScalarBits(element));
      } else {
        for (const auto& element : value) One(field, element);
      }
    } else {
      const size_t length = EncodedSize(value);
      if (length != 0) Message(field, value, length);
    }
  }

  template <typename T>
  void One(uint32_t field, const T& element) {
    if constexpr (kIsText<T>) {
      Text(field, TextOf(element));
    } else {
      Message(field, element, EncodedSize(element));
    }
  }
  void Text(uint32_t field, std::string_view text) {
    out.Tag(field, WireType::kBytes);
    out.Varint(text.size());
    out.Raw(text.data(), text.size());
  }
  template <typename M>
  void Message(uint32_t field, const M& message, size_t length) {
    out.Tag(field, WireType::kBytes);
    out.Varint(length);
    Visit(*this, message);
  }
};

template <typename M>
bool DecodeInto(WireReader in, M& message, size_t& budget);

// Reads the value of the one field whose number is on the wire.
struct ReadVisitor {
  WireReader& in;
  uint32_t field;
  WireType type;
  size_t& budget;
  bool found = false;

  template <typename T>
  void operator()(uint32_t number, T& value) {
    if (number != field || found) return;
    if constexpr (kIsScalar<T>) {
      if (type != ScalarType<T>()) return;
      found = true;
      value = ScalarFromBits<T>(type == WireType::kFixed64 ? in.Fixed64() : in.Varint());
    } else if constexpr (kIsSequence<T>) {
      ReadSequence(value);
    } else {
      if (type != WireType::kBytes) return;
      found = true;
      ReadBytes(in.Bytes(), value);
    }
  }

  template <typename T>
  void ReadBytes(std::span<const std::byte> bytes, T& value) {
    if (!in.ok()) return;
    if constexpr (std::is_same_v<T, std::string_view>) {
      value = AsText(bytes);
    } else if constexpr (std::is_same_v<T, Hash128>) {
      if (bytes.empty()) {
        value = {};
      } else if (bytes.size() == value.bytes.size()) {
        std::memcpy(value.bytes.data(), bytes.data(), bytes.size());
      } else {
        in.Fail();
      }
    } else {
      if (!DecodeInto(WireReader(bytes), value, budget)) in.Fail();
    }
  }

  template <typename T>
  void ReadSequence(T& values) {
    using Element = typename T::value_type;
    if constexpr (kIsScalar<Element>) {
      if (type == WireType::kVarint) {  // parsers must take unpacked elements too
        found = true;
        Add(values, ScalarFromBits<Element>(in.Varint()));
      } else if (type == WireType::kBytes) {
        found = true;
        WireReader packed(in.Bytes());
        while (in.ok() && !packed.AtEnd()) {
          Add(values, ScalarFromBits<Element>(packed.Varint()));
          if (!packed.ok()) in.Fail();
        }
      }
    } else if (type == WireType::kBytes) {
      found = true;
      Element element{};
      ReadBytes(in.Bytes(), element);
      if (in.ok()) Add(values, std::move(element));
    }
  }

  template <typename T>
  void Add(T& values, typename T::value_type&& element) {
    if constexpr (kIsVector<T>) {
      if (budget == 0) return in.Fail();
      --budget;
      values.push_back(std::move(element));
    } else {
      if (!values.push_back(element)) in.Fail();  // more than any Deja writes
    }
  }
};

template <typename M>
bool DecodeInto(WireReader in, M& message, size_t& budget) {
  uint32_t field = 0;
  WireType type{};
  while (in.Tag(field, type)) {
    ReadVisitor visitor{in, field, type, budget};
    Visit(visitor, message);
    if (!visitor.found) in.Skip(type);
  }
  return in.ok();
}

}  // namespace internal

// Bytes of the encoded message.
template <typename M>
size_t EncodedSize(const M& message) {
  internal::SizeVisitor visitor;
  Visit(visitor, message);
  return visitor.size;
}

// Appends `message` to what `out` holds; out.ok() is false when it did not fit.
template <typename M>
void EncodeTo(WireWriter& out, const M& message) {
  internal::WriteVisitor<WireWriter> visitor{out};
  Visit(visitor, message);
}

// Number of bytes written; 0 when `out` is too small (or the message is empty: see EncodedSize).
template <typename M>
size_t Encode(const M& message, std::span<std::byte> out) {
  if (EncodedSize(message) > out.size()) return 0;
  UncheckedWireWriter writer(out.data());
  internal::WriteVisitor<UncheckedWireWriter> visitor{writer};
  Visit(visitor, message);
  return writer.size();
}

// Appends the encoded message to `out`; allocates there.
template <typename M>
void AppendEncoded(const M& message, std::string& out) {
  const size_t old_size = out.size();
  const size_t size = EncodedSize(message);
  out.resize(old_size + size);
  Encode(message, std::span(reinterpret_cast<std::byte*>(out.data()) + old_size, size));
}

// The same as a new string.
template <typename M>
std::string EncodeToString(const M& message) {
  std::string out;
  AppendEncoded(message, out);
  return out;
}

// Decodes all of `in` into `message`, which should be fresh. Views point into `in`.
template <typename M>
[[nodiscard]] bool Decode(std::span<const std::byte> in, M& message,
                          size_t max_elements = kDefaultMaxElements) {
  return internal::DecodeInto(WireReader(in), message, max_elements);
}

// The same with a budget of elements that several messages share.
template <typename M>
[[nodiscard]] bool DecodeWithin(std::span<const std::byte> in, M& message, size_t& budget) {
  return internal::DecodeInto(WireReader(in), message, budget);
}

// ---- Events: the head's fields, then the body under the number of its kind.

// Bytes of the encoded event.
template <typename Body>
size_t EncodedEventSize(const EventHead& head, const Body& body) {
  internal::SizeVisitor visitor;
  Visit(visitor, head);
  visitor.AddBytes(VarintSize(static_cast<uint64_t>(kKindOf<Body>) << 3), EncodedSize(body));
  return visitor.size;
}

// Number of bytes written; 0 when `out` is too small. `Body` is one of EventBody's messages.
template <typename Body>
size_t EncodeEvent(const EventHead& head, const Body& body, std::span<std::byte> out) {
  static_assert(kKindOf<Body> != EventKind::kNone, "not the body of an event");
  internal::SizeVisitor size;
  Visit(size, head);
  const size_t body_size = EncodedSize(body);
  size.AddBytes(VarintSize(static_cast<uint64_t>(kKindOf<Body>) << 3), body_size);
  if (size.size > out.size()) return 0;
  UncheckedWireWriter writer(out.data());
  internal::WriteVisitor<UncheckedWireWriter> visitor{writer};
  Visit(visitor, head);
  visitor.Message(static_cast<uint32_t>(kKindOf<Body>), body, body_size);
  return writer.size();
}

// EncodeEvent into a new string.
template <typename Body>
std::string EncodeEventToString(const EventHead& head, const Body& body) {
  std::string out(EncodedEventSize(head, body), '\0');
  EncodeEvent(head, body, std::span(reinterpret_cast<std::byte*>(out.data()), out.size()));
  return out;
}

// Decodes one serialized Event. `body_field`, if given, is set to the field number of the body even
// if this version does not know it (event.body is then std::monostate); 0 if there is none.
[[nodiscard]] bool DecodeEvent(std::span<const std::byte> in, Event& event,
                               uint32_t* body_field = nullptr);

// ---- EventBatch { repeated Event events = 1; }: events are appended and taken out one by one.

inline constexpr uint32_t kBatchEventsField = 1;

// Bytes that AppendToBatch adds in front of an event.
inline constexpr size_t kMaxBatchEventOverhead = 1 + 10;

// Appends an event to a batch: its tag, its length, itself.
inline void AppendToBatch(std::span<const std::byte> encoded_event, std::string& batch) {
  std::byte prefix[kMaxBatchEventOverhead];
  WireWriter writer(prefix);
  writer.Tag(kBatchEventsField, WireType::kBytes);
  writer.Varint(encoded_event.size());
  batch.append(reinterpret_cast<const char*>(prefix), writer.size());
  batch.append(AsText(encoded_event));
}

// Takes the next event out of a serialized EventBatch. False at the end, and when the batch is
// malformed (then reader.ok() is false).
inline bool NextInBatch(WireReader& reader, std::span<const std::byte>& encoded_event) {
  uint32_t field = 0;
  WireType type{};
  while (reader.Tag(field, type)) {
    if (field == kBatchEventsField && type == WireType::kBytes) {
      encoded_event = reader.Bytes();
      return reader.ok();
    }
    reader.Skip(type);
  }
  return false;
}

}  // namespace deja::format

#endif  // DEJA_FORMAT_WIRE_MESSAGE_CODEC_H_
