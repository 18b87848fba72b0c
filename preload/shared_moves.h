// Shared moves: where a read or a relative seek of a descriptor found it, when that is not where
// this process had left it: another process has the same open file, by a fork.
//
// Each process counts its own moves of an open file from its opening on; a fork child goes on with
// its parent's count. A move that was not from where the one before had ended is an Input event of
// lseek: its key is PathKey of the file, its result the position (-1: not known), its data the
// count and, where the position is not known, where the file stood afterwards and what was read.
//
// Values; any thread.
#ifndef DEJA_PRELOAD_SHARED_MOVES_H_
#define DEJA_PRELOAD_SHARED_MOVES_H_

#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

#include "preload/digest.h"

namespace deja::preload {

inline uint64_t PathKey(std::string_view path) {
  const Hash128 hash = HashBytes(std::as_bytes(std::span(path)));
  uint64_t key = 0;
  std::memcpy(&key, hash.bytes.data(), sizeof key);
  return key | 1;
}

// What stands before the bytes of such an event's data, if there are any.
struct SharedMove {
  uint32_t number = 0;  // of the move
  uint32_t reserved = 0;
  int64_t after = 0;
};
static_assert(sizeof(SharedMove) == 16);

}  // namespace deja::preload

#endif  // DEJA_PRELOAD_SHARED_MOVES_H_
