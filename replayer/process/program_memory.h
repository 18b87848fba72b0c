// Memory of the program that an argument of a call points to.
//
// The program's own: a bad address is its bug, and faults as it would in the real call.
#ifndef DEJA_REPLAYER_PROCESS_PROGRAM_MEMORY_H_
#define DEJA_REPLAYER_PROCESS_PROGRAM_MEMORY_H_

#include <cstdint>
#include <cstring>

namespace deja::replayer {

// Puts `value`, narrowed to T, where `address` points. Nothing where that is null.
template <typename T>
void Store(uint64_t address, uint64_t value) {
  if (address == 0) return;
  const T narrow = static_cast<T>(value);
  std::memcpy(reinterpret_cast<void*>(address), &narrow, sizeof narrow);
}

}  // namespace deja::replayer

#endif  // DEJA_REPLAYER_PROCESS_PROGRAM_MEMORY_H_
