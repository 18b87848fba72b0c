// The simulated driver's memory: which addresses are whose. Any thread.
#ifndef DEJA_TESTS_FAKES_CUDA_SIM_MEMORY_H_
#define DEJA_TESTS_FAKES_CUDA_SIM_MEMORY_H_

#include <cstddef>
#include <cstdint>

namespace cusim {

enum class Memory { kPageable, kPinned, kDevice, kManaged };

void* Allocate(Memory kind, size_t bytes, int device);  // null: there is none left
bool Free(void* memory);
bool Register(void* memory, size_t bytes);
Memory KindOf(const void* address);
int DeviceOf(const void* address);  // 0 of what is no device's
void* Backing(const void* address);
// Where a device sees pinned memory; 0: it does not. And what it sees at an address; null: nothing.
uintptr_t DeviceAddressOf(const void* host);
void* SeenByDevice(uintptr_t address);

// All device memory of this process goes to the host, and is free for others; what is left in its
// place is undefined. And back; false: there is no room for it. No other thread uses it meanwhile.
void TakeMemoryOut();
bool BringMemoryBack();

}  // namespace cusim

#endif  // DEJA_TESTS_FAKES_CUDA_SIM_MEMORY_H_
