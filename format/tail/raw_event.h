// Raw events: the numbers of an event one after the other, as its thread leaves them in its ring.
//
// Writing one costs a copy. The background thread, or a reader of a tail that was left behind,
// makes the protobuf message of it with EncodeRawEvent. Both are derived from the messages' Visit()
// functions. Nothing but the tail of a running or dead process has this form: docs/FORMAT.md, "The
// tail".
//
// A raw event is a sequence of 64-bit words. Numbers of up to 32 bits, the lengths of texts and the
// counts of sequences take half a word, low half first; longer numbers a word. First come the kind
// and the head. A message follows as all of these in the order of its fields, and then, in the same
// order, what has no fixed size. That is the bytes of texts, elements, and nested messages after a
// word that is 1 if there is one. Each of these parts begins with a word of its own.
//
// Any thread, signal handlers too; no allocation.
#ifndef DEJA_FORMAT_TAIL_RAW_EVENT_H_
#define DEJA_FORMAT_TAIL_RAW_EVENT_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>

#include "format/tail/tail_format.h"
#include "format/wire/message_codec.h"
#include "format/wire/messages.h"

namespace deja::format {

// Kinds that happen often. The others are encoded by the thread that they happen to.
template <typename Body>
inline constexpr bool kIsRaw =
    std::is_same_v<Body, CallEnter> || std::is_same_v<Body, CallLeave> ||
    std::is_same_v<Body, CallResults> || std::is_same_v<Body, Input> ||
    std::is_same_v<Body, FileRead> || std::is_same_v<Body, Transfer> || std::is_same_v<Body, Note>;

// Longer ones are encoded, too.
inline constexpr size_t kMaxRawBytes = 2 << 10;

// The check of a record: the upper half of the sum of its words, each times an odd number of its
// own. Its place in the stream of the ring is among them. One word that was changed at random goes
// unnoticed once in 2^31 times, a record of another place as rarely.
class RawCheck {
 public:
  explicit RawCheck(uint64_t position) : sum_(position * kStep) {}
  // Adds the next word of the event.
  void Add(uint64_t word) {
    sum_ += word * key_;
    key_ += kStep;
  }
  [[nodiscard]] uint32_t Value() const { return static_cast<uint32_t>(sum_ >> 32); }

 private:
  static constexpr uint64_t kStep = 0x9e3779b97f4a7c16;  // even: the keys stay odd
  uint64_t sum_;
  uint64_t key_ = 0xc2b2ae3d27d4eb4f;
};

// The message of the raw event `raw`, as EncodeEvent writes it, into `out`, which has
// kMaxEventBytes. The number of its bytes; 0 if `raw`, which is hostile, is no event.
size_t EncodeRawEvent(std::span<const std::byte> raw, std::span<std::byte> out);
// The check of such a record.
uint32_t RawCheckOf(uint64_t position, std::span<const std::byte> raw);

namespace internal {

constexpr size_t RawTextBytes(size_t size) {
  return (size + 7) / 8 * 8;
}

// Not less than what a message takes.
struct RawBoundVisitor {
  size_t bound = 8;  // what padding may add

  template <typename T>
  void operator()(uint32_t, const T& value) {
    if constexpr (kIsScalar<T>) {
      bound += 8;
    } else if constexpr (kIsText<T>) {
      bound += 8 + RawTextBytes(TextOf(value).size());
    } else if constexpr (kIsSequence<T>) {
      bound += 8;
      if constexpr (kIsScalar<typename T::value_type>) {
        bound += value.size() * 8;
      } else {
        for (const auto& element : value) {
          bound += 8;
          Visit(*this, element);
        }
      }
    } else {
      bound += 16;
      Visit(*this, value);
    }
  }
};

class RawWriter {
 public:
  RawWriter(std::byte* at, uint64_t position) : next_(at), check_(position) {}

  void Word(uint64_t word) {
    // One by one: loads of several words that were just stored as single ones would have to wait.
    asm("" : "+r"(word));
    std::memcpy(next_, &word, sizeof word);
    next_ += sizeof word;
    check_.Add(word);
  }
  void Half(uint32_t value) {
    if (half_) {
      Word(low_ | uint64_t{value} << 32);
    } else {
      low_ = value;
    }
    half_ = !half_;
  }
  void Align() {
    if (half_) Word(low_);
    half_ = false;
  }
  void Bytes(std::string_view text) {
    const char* from = text.data();
    for (size_t words = text.size() / 8; words > 0; --words, from += 8) {
      uint64_t word;
      std::memcpy(&word, from, sizeof word);
      Word(word);
    }
    const size_t left = text.size() % 8;
    if (left == 0) return;
    uint64_t last = 0;
    std::memcpy(&last, from, left);
    Word(last);
  }

  [[nodiscard]] std::byte* next() const { return next_; }
  // Sizes of everything, and `word`, which is not written.
  uint32_t Check(uint64_t word) {
    check_.Add(word);
    return check_.Value();
  }

 private:
  std::byte* next_;
  RawCheck check_;
  uint64_t low_ = 0;
  bool half_ = false;
};

template <typename M>
inline void WriteRawMessage(RawWriter& out, const M& message);

struct RawFixedVisitor {
  RawWriter& out;

  template <typename T>
  void operator()(uint32_t, const T& value) {
    if constexpr (kIsScalar<T>) {
      if constexpr (sizeof(T) == 8) {
        out.Align();
        uint64_t word;
        std::memcpy(&word, &value, sizeof word);
        out.Word(word);
      } else {
        out.Half(static_cast<uint32_t>(value));
      }
    } else if constexpr (kIsText<T>) {
      out.Half(static_cast<uint32_t>(TextOf(value).size()));
    } else if constexpr (kIsSequence<T>) {
      out.Half(static_cast<uint32_t>(value.size()));
    }
  }
};

struct RawRestVisitor {
  RawWriter& out;

  template <typename T>
  void operator()(uint32_t, const T& value) {
    if constexpr (kIsText<T>) {
      out.Bytes(TextOf(value));
    } else if constexpr (kIsSequence<T>) {
      for (const auto& element : value) {
        if constexpr (kIsScalar<typename T::value_type>) {
          out.Word(static_cast<uint64_t>(element));
        } else {
          WriteRawMessage(out, element);
        }
      }
    } else if constexpr (!kIsScalar<T>) {
      const bool there = EncodedSize(value) != 0;
      out.Word(there ? 1 : 0);
      if (there) WriteRawMessage(out, value);
    }
  }
};

template <typename M>
inline void WriteRawMessage(RawWriter& out, const M& message) {
  RawFixedVisitor fixed{out};
  Visit(fixed, message);
  out.Align();
  RawRestVisitor rest{out};
  Visit(rest, message);
}

}  // namespace internal

// Bytes that the record of `body` takes at most, its header included.
template <typename Body>
size_t RawRecordBound(const Body& body) {
  internal::RawBoundVisitor visitor;
  visitor.bound += sizeof(RecordHeader) + 3 * 8;
  Visit(visitor, body);
  return visitor.bound;
}

// Writes the whole record to `at`, which has RawRecordBound(body) bytes; `position` is its place in
// the stream of the ring. The number of its bytes.
template <typename Body>
[[gnu::flatten]] inline size_t WriteRawRecord(const EventHead& head, const Body& body,
                                              uint64_t position, std::byte* at) {
  static_assert(kIsRaw<Body>);
  internal::RawWriter out(at + sizeof(RecordHeader), position);
  out.Half(static_cast<uint32_t>(kKindOf<Body>));
  out.Half(head.thread);
  out.Word(head.seq);
  out.Word(head.time_ns);
  internal::WriteRawMessage(out, body);
  const auto size = static_cast<size_t>(out.next() - at);
  const auto length = static_cast<uint32_t>(size - sizeof(RecordHeader)) | kRawRecord;
  const uint64_t header = length | uint64_t{out.Check(length)} << 32;
  std::memcpy(at, &header, sizeof header);
  return size;
}

}  // namespace deja::format

#endif  // DEJA_FORMAT_TAIL_RAW_EVENT_H_
