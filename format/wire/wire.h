// The protobuf wire format: varints, tags, and bounded writing and reading of them.
//
// WireWriter writes into memory that the caller owns and never past its end; WireReader reads
// memory that the caller owns and treats it as hostile. Neither allocates. Both latch the first
// failure: check ok() once at the end. Any thread; safe in signal handlers.
#ifndef DEJA_FORMAT_WIRE_WIRE_H_
#define DEJA_FORMAT_WIRE_WIRE_H_

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

namespace deja::format {

static_assert(std::endian::native == std::endian::little, "the trace is little-endian on disk");

enum class WireType : uint32_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

constexpr uint32_t MakeTag(uint32_t field, WireType type) {
  return field << 3 | static_cast<uint32_t>(type);
}

constexpr size_t VarintSize(uint64_t value) {
  return (static_cast<size_t>(std::bit_width(value | 1)) * 9 + 64) / 64;
}

constexpr uint64_t ZigZag(int64_t value) {
  return (static_cast<uint64_t>(value) << 1) ^ static_cast<uint64_t>(value >> 63);
}
constexpr int64_t UnZigZag(uint64_t value) {
  return static_cast<int64_t>((value >> 1) ^ (~(value & 1) + 1));
}

class WireWriter {
 public:
  explicit WireWriter(std::span<std::byte> out) : begin_(out.data()), end_(begin_ + out.size()) {
    next_ = begin_;
  }

  // Write one value; a value without room sets the failure, and nothing more is written.
  void Varint(uint64_t value) {
    if (!Room(VarintSize(value))) return;
    while (value >= 0x80) {
      *next_++ = static_cast<std::byte>(value | 0x80);
      value >>= 7;
    }
    *next_++ = static_cast<std::byte>(value);
  }
  void Tag(uint32_t field, WireType type) { Varint(MakeTag(field, type)); }
  void Fixed64(uint64_t value) { Raw(&value, sizeof value); }
  void Raw(const void* data, size_t size) {
    if (!Room(size)) return;
    if (size != 0) std::memcpy(next_, data, size);
    next_ += size;
  }

  [[nodiscard]] bool ok() const { return ok_; }
  [[nodiscard]] size_t size() const { return static_cast<size_t>(next_ - begin_); }

 private:
  bool Room(size_t size) {
    if (static_cast<size_t>(end_ - next_) >= size) return true;
    ok_ = false;
    end_ = next_;  // nothing more is written: what is there stays a prefix
    return false;
  }

  std::byte* begin_;
  std::byte* next_;
  std::byte* end_;
  bool ok_ = true;
};

// The same without looking for the end: for memory that is known to be large enough.
class UncheckedWireWriter {
 public:
  explicit UncheckedWireWriter(std::byte* out) : begin_(out), next_(out) {}

  // The same without a look at the room: the caller has made sure of it.
  void Varint(uint64_t value) {
    while (value >= 0x80) {
      *next_++ = static_cast<std::byte>(value | 0x80);
      value >>= 7;
    }
    *next_++ = static_cast<std::byte>(value);
  }
  void Tag(uint32_t field, WireType type) { Varint(MakeTag(field, type)); }
  void Fixed64(uint64_t value) { Raw(&value, sizeof value); }
  void Raw(const void* data, size_t size) {
    if (size != 0) std::memcpy(next_, data, size);
    next_ += size;
  }
  [[nodiscard]] size_t size() const { return static_cast<size_t>(next_ - begin_); }

 private:
  std::byte* begin_;
  std::byte* next_;
};

class WireReader {
 public:
  explicit WireReader(std::span<const std::byte> in)
      : next_(in.data()), end_(in.data() + in.size()) {}

  [[nodiscard]] bool ok() const { return ok_; }
  [[nodiscard]] bool AtEnd() const { return next_ == end_; }
  [[nodiscard]] size_t remaining() const { return static_cast<size_t>(end_ - next_); }
  // Ends the reading: every later read gives 0 and ok() is false.
  void Fail() {
    ok_ = false;
    next_ = end_;
  }

  // Varint and fixed values; 0 after a failure.
  uint64_t Varint() {
    uint64_t value = 0;
    for (uint32_t shift = 0; shift < 70; shift += 7) {
      if (next_ == end_) break;
      const auto byte = static_cast<uint64_t>(*next_++);
      if (shift == 63 && byte > 1) break;  // more than 64 bits
      value |= (byte & 0x7f) << shift;
      if ((byte & 0x80) == 0) return value;
    }
    Fail();
    return 0;
  }

  // Little-endian.
  uint64_t Fixed64() {
    uint64_t value = 0;
    if (remaining() < sizeof value) {
      Fail();
      return 0;
    }
    std::memcpy(&value, next_, sizeof value);
    next_ += sizeof value;
    return value;
  }

  // A length and that many bytes.
  std::span<const std::byte> Bytes() {
    const uint64_t size = Varint();
    if (!ok_ || size > remaining()) {
      Fail();
      return {};
    }
    const std::span<const std::byte> bytes(next_, static_cast<size_t>(size));
    next_ += size;
    return bytes;
  }

  // Reads a tag; false at the end and on failure.
  bool Tag(uint32_t& field, WireType& type) {
    if (next_ == end_) return false;
    const uint64_t tag = Varint();
    field = static_cast<uint32_t>(tag >> 3);
    type = static_cast<WireType>(tag & 7);
    if (!ok_ || tag > 0xffffffffu || field == 0) {
      Fail();
      return false;
    }
    return true;
  }

  // Steps over the value of a field that the reader does not know. Groups, which no version of the
  // format has, are malformed; so nothing here recurses.
  void Skip(WireType type) {
    switch (type) {
      case WireType::kVarint:
        Varint();
        return;
      case WireType::kFixed64:
        Fixed64();
        return;
      case WireType::kBytes:
        Bytes();
        return;
      case WireType::kFixed32:
        if (remaining() < 4) return Fail();
        next_ += 4;
        return;
    }
    Fail();
  }

 private:
  const std::byte* next_;
  const std::byte* end_;
  bool ok_ = true;
};

inline std::string_view AsText(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}
inline std::span<const std::byte> AsBytes(std::string_view text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}

}  // namespace deja::format

#endif  // DEJA_FORMAT_WIRE_WIRE_H_
