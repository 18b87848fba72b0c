// What the simulated driver's processes have in common: how much of each device's memory they use,
// and what they ask of each other (process checkpoints).
//
// CUDA_SIM_MEMORY is the size of a device's memory in bytes; without it nothing here is used.
// Processes with the same CUDA_SIM_KEY share the devices: an absolute path of a file, or a number,
// the key of a System V segment; who has chosen it removes it at last. Any thread.
#ifndef DEJA_TESTS_FAKES_CUDA_SIM_BOARD_H_
#define DEJA_TESTS_FAKES_CUDA_SIM_BOARD_H_

#include <atomic>
#include <cstdint>

namespace cusim {

inline constexpr int kBoardDevices = 16;

// One process. `request` and `answer` count; both are futexes.
struct Slot {
  std::atomic<int> pid;  // 0: free
  std::atomic<uint64_t> used[kBoardDevices];
  std::atomic<int> state;  // CUprocessState
  std::atomic<uint32_t> request;
  std::atomic<int> what;
  std::atomic<uint32_t> timeout_ms;
  std::atomic<uint32_t> answer;
  std::atomic<int> result;  // CUresult
};

// Bytes of one device; 0: there is no limit.
uint64_t DeviceLimit();
// This process's slot. Only with a limit.
Slot& OwnSlot();
// Null: no process of this number uses the driver.
Slot* FindSlot(int pid);
bool IsAlive(int pid);

// False: the bytes are not free. Any number, if there is no limit.
bool Reserve(int device, uint64_t bytes);
void Release(int device, uint64_t bytes);
uint64_t FreeBytes(int device);

void WaitOn(std::atomic<uint32_t>& word, uint32_t seen, uint32_t limit_ms);
void WakeAll(std::atomic<uint32_t>& word);

}  // namespace cusim

#endif  // DEJA_TESTS_FAKES_CUDA_SIM_BOARD_H_
