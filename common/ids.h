// Strong identifiers and small value types shared by every part of Deja.
//
// Plain values: copyable, no ownership, usable from any thread and from signal handlers.
#ifndef DEJA_COMMON_IDS_H_
#define DEJA_COMMON_IDS_H_

#include <array>
#include <cstdint>
#include <cstring>

namespace deja {

// Number of a communicator within one rank, in the order in which the rank created them.
using CommId = uint32_t;
inline constexpr CommId kNoComm = 0xffffffffu;

// Number of an application thread within one process, in order of first appearance. The thread's
// stable name (parent's name + "." + number of the child) is in its ThreadStart event.
using ThreadIndex = uint32_t;

// Number of a distinct call stack within one rank; 0 means "no stack was taken".
using StackId = uint32_t;

// A 128-bit content hash (XXH3-128, canonical i.e. big-endian byte order).
struct Hash128 {
  std::array<uint8_t, 16> bytes{};

  friend bool operator==(const Hash128&, const Hash128&) = default;
  friend auto operator<=>(const Hash128&, const Hash128&) = default;
  [[nodiscard]] bool IsZero() const { return *this == Hash128{}; }
  // First eight bytes, for hash tables.
  [[nodiscard]] uint64_t Prefix() const {
    uint64_t v;
    std::memcpy(&v, bytes.data(), sizeof v);
    return v;
  }
};

// How much is recorded: metadata, digests as well, payloads as well.
enum class Level : uint32_t { kOrder = 0, kDigest = 1, kFull = 2 };

}  // namespace deja

#endif  // DEJA_COMMON_IDS_H_
