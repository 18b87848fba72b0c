// EncodeEventOnce: what EncodeEvent writes, in one pass.
//
// For the thread that an event happens to. EncodeEvent first adds up the sizes that protobuf wants
// in front of what is nested; here each length gets one byte, and what turns out to be longer is
// moved. Any thread, signal handlers too; no allocation.
#ifndef DEJA_FORMAT_WIRE_EVENT_ENCODER_H_
#define DEJA_FORMAT_WIRE_EVENT_ENCODER_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "format/wire/message_codec.h"

namespace deja::format {
namespace internal {

// Never less than what a message takes: texts by their size, all else at its longest.
struct BoundVisitor {
  static constexpr size_t kTag = 5;
  static constexpr size_t kVarint = 10;
  size_t bound = 0;

  template <typename T>
  void operator()(uint32_t, const T& value) {
    if constexpr (kIsScalar<T>) {
      bound += kTag + kVarint;
    } else if constexpr (kIsText<T>) {
      bound += kTag + kVarint + TextOf(value).size();
    } else if constexpr (kIsSequence<T>) {
      using Element = typename T::value_type;
      bound += kTag + kVarint;
      if constexpr (kIsScalar<Element>) {
        bound += value.size() * kVarint;
      } else {
        for (const auto& element : value) (*this)(0, element);
      }
    } else {
      bound += kTag + kVarint;
      Visit(*this, value);
    }
  }
};

struct OnePassVisitor {
  std::byte* next;

  void Varint(uint64_t value) {
    while (value >= 0x80) {
      *next++ = static_cast<std::byte>(value | 0x80);
      value >>= 7;
    }
    *next++ = static_cast<std::byte>(value);
  }
  void Tag(uint32_t field, WireType type) { Varint(MakeTag(field, type)); }

  // What was written since `begin` gets its length in front, for which a byte was left.
  void Close(std::byte* begin) {
    const auto size = static_cast<size_t>(next - begin);
    if (size < 0x80) {
      begin[-1] = static_cast<std::byte>(size);
      return;
    }
    const size_t more = VarintSize(size) - 1;
    std::memmove(begin + more, begin, size);
    next = begin - 1;
    Varint(size);
    next += size;
  }

  template <typename T>
  void operator()(uint32_t field, const T& value) {
    if constexpr (kIsScalar<T>) {
      const uint64_t bits = ScalarBits(value);
      if (bits == 0) return;
      Tag(field, ScalarType<T>());
      if constexpr (std::is_same_v<T, double>) {
        std::memcpy(next, &bits, sizeof bits);
        next += sizeof bits;
      } else {
        Varint(bits);
      }
    } else if constexpr (kIsText<T>) {
      if (!TextOf(value).empty()) Text(field, TextOf(value));
    } else if constexpr (kIsSequence<T>) {
      using Element = typename T::value_type;
      if constexpr (kIsScalar<Element>) {
        if (value.empty()) return;
        Tag(field, WireType::kBytes);
        std::byte* begin = ++next;
        for (const auto& element : value) Varint(ScalarBits(element));
        Close(begin);
      } else if constexpr (kIsText<Element>) {
        for (const auto& element : value) Text(field, TextOf(element));
      } else {
        for (const auto& element : value) Message(field, element);
      }
    } else {
      std::byte* before = next;
      if (Message(field, value) == 0) next = before;  // an empty one is left out
    }
  }

  void Text(uint32_t field, std::string_view text) {
    Tag(field, WireType::kBytes);
    Varint(text.size());
    if (!text.empty()) std::memcpy(next, text.data(), text.size());
    next += text.size();
  }
  template <typename M>
  size_t Message(uint32_t field, const M& message) {
    Tag(field, WireType::kBytes);
    std::byte* begin = ++next;
    Visit(*this, message);
    const auto size = static_cast<size_t>(next - begin);
    Close(begin);
    return size;
  }
};

}  // namespace internal

// Number of bytes written; 0 when the event may not fit: then EncodeEvent knows.
template <typename Body>
size_t EncodeEventOnce(const EventHead& head, const Body& body, std::span<std::byte> out) {
  static_assert(kKindOf<Body> != EventKind::kNone, "not the body of an event");
  internal::BoundVisitor bound;
  Visit(bound, head);
  bound(0, body);
  if (bound.bound > out.size()) return 0;
  internal::OnePassVisitor visitor{out.data()};
  Visit(visitor, head);
  visitor.Message(static_cast<uint32_t>(kKindOf<Body>), body);
  return static_cast<size_t>(visitor.next - out.data());
}

}  // namespace deja::format

#endif  // DEJA_FORMAT_WIRE_EVENT_ENCODER_H_
