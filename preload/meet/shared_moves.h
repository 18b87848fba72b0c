// Shared moves: reads and relative seeks that find a descriptor elsewhere than this process left
// it. Another process has the same open file, by a fork.
//
// Each process counts its own moves of an open file from its opening on, and how often it opens a
// path; a fork child goes on with its parent's counts. A move that did not begin where the one
// before had ended is an Input event of lseek. Its key is PathKey of the file and its result the
// position (-1: not known). Its data is a SharedMove and, where the position is not known, what was
// read.
//
// Any thread; lock-free.
#ifndef DEJA_PRELOAD_MEET_SHARED_MOVES_H_
#define DEJA_PRELOAD_MEET_SHARED_MOVES_H_

#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

#include "digest/digest.h"

namespace deja::preload {

inline uint64_t PathKey(std::string_view path) {
  const Hash128 hash = digest::HashBytes(std::as_bytes(std::span(path)));
  uint64_t key = 0;
  std::memcpy(&key, hash.bytes.data(), sizeof key);
  return key | 1;
}

// What stands before the bytes of such an event's data, if there are any.
struct SharedMove {
  uint32_t number = 0;  // of the move
  uint32_t open = 0;    // what CountOpen said
  int64_t after = 0;    // where the file stood then
};
static_assert(sizeof(SharedMove) == 16);

// The program has opened a regular file under this path. How often it had before; 0 of one that
// comes after some 16,000 others.
uint32_t CountOpen(uint64_t path_key);

}  // namespace deja::preload

#endif  // DEJA_PRELOAD_MEET_SHARED_MOVES_H_
