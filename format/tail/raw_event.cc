#include "format/tail/raw_event.h"

#include "format/wire/event_encoder.h"

namespace deja::format {
namespace {

using internal::kIsScalar;
using internal::kIsSequence;
using internal::kIsText;

// Words of a raw event, and halves of them. Hostile; latches the first failure.
class RawReader {
 public:
  explicit RawReader(std::span<const std::byte> in) : in_(in) {}

  uint64_t Word() {
    if (!ok_ || in_.size() < sizeof(uint64_t)) {
      Fail();
      return 0;
    }
    uint64_t word;
    std::memcpy(&word, in_.data(), sizeof word);
    in_ = in_.subspan(sizeof word);
    return word;
  }
  uint32_t Half() {
    if (half_) {
      half_ = false;
      return high_;
    }
    const uint64_t word = Word();
    half_ = true;
    high_ = static_cast<uint32_t>(word >> 32);
    return static_cast<uint32_t>(word);
  }
  void Align() { half_ = false; }
  const std::byte* Bytes(size_t size) {
    if (!ok_ || internal::RawTextBytes(size) > in_.size()) {
      Fail();
      return nullptr;
    }
    const std::byte* bytes = in_.data();
    in_ = in_.subspan(internal::RawTextBytes(size));
    return bytes;
  }

  void Fail() { ok_ = false; }
  [[nodiscard]] bool ok() const { return ok_; }
  [[nodiscard]] std::span<const std::byte> left() const { return in_; }

 private:
  std::span<const std::byte> in_;
  uint32_t high_ = 0;
  bool half_ = false;
  bool ok_ = true;
};

template <typename M>
void ReadMessage(RawReader& in, M& message);

// Numbers, and the size of everything else: texts get their length, sequences their count of
// elements, a hash that is there a mark.
struct FixedVisitor {
  RawReader& in;

  template <typename T>
  void operator()(uint32_t, T& value) {
    if constexpr (kIsScalar<T>) {
      if constexpr (sizeof(T) == 8) {
        in.Align();
        const uint64_t word = in.Word();
        std::memcpy(&value, &word, sizeof value);
      } else {
        value = static_cast<T>(in.Half());
      }
    } else if constexpr (kIsText<T>) {
      const uint32_t size = in.Half();
      if constexpr (std::is_same_v<T, Hash128>) {
        if (size != 0 && size != sizeof value.bytes) in.Fail();
        value.bytes[0] = size != 0 ? 1 : 0;
      } else {
        if (size > in.left().size()) return in.Fail();
        value = AsText(in.left().first(size));  // until its own bytes are read
      }
    } else if constexpr (kIsSequence<T>) {
      const uint32_t count = in.Half();
      if (count > T::kCapacity) return in.Fail();
      for (uint32_t i = 0; i < count; ++i) value.push_back({});
    }
  }
};

struct RestVisitor {
  RawReader& in;

  template <typename T>
  void operator()(uint32_t, T& value) {
    if constexpr (std::is_same_v<T, Hash128>) {
      if (value.IsZero()) return;
      const std::byte* bytes = in.Bytes(sizeof value.bytes);
      if (bytes != nullptr) std::memcpy(value.bytes.data(), bytes, sizeof value.bytes);
    } else if constexpr (kIsText<T>) {
      const std::byte* bytes = in.Bytes(value.size());
      value = AsText(std::span(bytes, bytes != nullptr ? value.size() : 0));
    } else if constexpr (kIsSequence<T>) {
      for (auto& element : value) {
        if constexpr (kIsScalar<typename T::value_type>) {
          element = static_cast<typename T::value_type>(in.Word());
        } else {
          ReadMessage(in, element);
        }
      }
    } else if constexpr (!kIsScalar<T>) {
      if (in.Word() != 0) ReadMessage(in, value);
    }
  }
};

template <typename M>
void ReadMessage(RawReader& in, M& message) {
  FixedVisitor fixed{in};
  Visit(fixed, message);
  in.Align();
  RestVisitor rest{in};
  Visit(rest, message);
}

template <size_t I = 1>
size_t EncodeKind(uint32_t kind, const EventHead& head, RawReader& in, std::span<std::byte> out) {
  if constexpr (I < std::variant_size_v<EventBody>) {
    using Body = std::variant_alternative_t<I, EventBody>;
    if constexpr (kIsRaw<Body>) {
      if (static_cast<uint32_t>(kKindOf<Body>) == kind) {
        Body body;
        ReadMessage(in, body);
        return in.ok() && in.left().empty() ? EncodeEvent(head, body, out) : 0;
      }
    }
    return EncodeKind<I + 1>(kind, head, in, out);
  } else {
    return 0;
  }
}

}  // namespace

size_t EncodeRawEvent(std::span<const std::byte> raw, std::span<std::byte> out) {
  RawReader in(raw);
  const uint32_t kind = in.Half();
  EventHead head;
  head.thread = in.Half();
  head.seq = in.Word();
  head.time_ns = in.Word();
  return in.ok() ? EncodeKind(kind, head, in, out) : 0;
}

uint32_t RawCheckOf(uint64_t position, std::span<const std::byte> raw) {
  RawCheck check(position);
  const size_t length = raw.size();
  for (; raw.size() >= sizeof(uint64_t); raw = raw.subspan(sizeof(uint64_t))) {
    uint64_t word;
    std::memcpy(&word, raw.data(), sizeof word);
    check.Add(word);
  }
  check.Add(static_cast<uint32_t>(length) | kRawRecord);
  return check.Value();
}

}  // namespace deja::format
