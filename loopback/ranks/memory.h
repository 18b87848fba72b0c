// The one place that touches the program's buffers other than through reduce.h.
//
// Host memory: a copy. Any thread.
#ifndef DEJA_LOOPBACK_RANKS_MEMORY_H_
#define DEJA_LOOPBACK_RANKS_MEMORY_H_

#include <cstddef>
#include <cstring>

namespace deja::loopback {

// From the program's buffer to memory of ours.
inline void CopyIn(void* ours, const void* buffer, size_t bytes) {
  std::memcpy(ours, buffer, bytes);
}
// From memory of ours to the program's buffer.
inline void CopyOut(void* buffer, const void* ours, size_t bytes) {
  std::memcpy(buffer, ours, bytes);
}
// Between two of the program's buffers, which may be the same or overlap.
inline void CopyAcross(void* to, const void* from, size_t bytes) {
  if (to != from && bytes > 0) std::memmove(to, from, bytes);
}
// A pointer through which the processor can read the program's buffer.
inline const void* Readable(const void* buffer) {
  return buffer;
}
// A pointer through which the processor can write it.
inline void* Writable(void* buffer) {
  return buffer;
}

}  // namespace deja::loopback

#endif  // DEJA_LOOPBACK_RANKS_MEMORY_H_
