// What the arguments of a call point to, in the program's memory.
#ifndef DEJA_RECORDER_EVENTS_ARGUMENT_MEMORY_H_
#define DEJA_RECORDER_EVENTS_ARGUMENT_MEMORY_H_

#include <cstdint>
#include <cstring>

namespace deja::recorder {

inline const void* Pointer(uint64_t word) {
  return reinterpret_cast<const void*>(word);
}

// The T at an address, widened; 0 where the program gave no address.
template <typename T>
uint64_t ValueAt(uint64_t address) {
  T value{};
  if (address != 0) std::memcpy(&value, Pointer(address), sizeof value);
  return static_cast<uint64_t>(value);
}

}  // namespace deja::recorder

#endif  // DEJA_RECORDER_EVENTS_ARGUMENT_MEMORY_H_
