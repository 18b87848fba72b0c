// What the kernel knows about processes and waiting: futexes on shared memory, whether a peer is
// alive, random bytes, time. Any thread.
#ifndef DEJA_LOOPBACK_RANKS_PROCESS_H_
#define DEJA_LOOPBACK_RANKS_PROCESS_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

namespace deja::loopback {

void RandomBytes(void* out, size_t bytes);
uint64_t MonotonicNanos();

// A process, so that a later one with the same number is not taken for it.
struct ProcessId {
  int32_t pid = 0;
  uint64_t start_time = 0;
  uint64_t pid_namespace = 0;
};
ProcessId ThisProcess();

// Whether `process` has ended. What cannot be found out, because another pid namespace hides it, is
// believed to be alive. Keeps no file descriptor: programs under test count theirs.
bool HasEnded(const ProcessId& process);

// One futex to wait on, and the value that means "nothing happened yet".
struct Doorbell {
  std::atomic<uint32_t>* word = nullptr;
  uint32_t value = 0;
};

// Sleeps until one of `doorbells` is rung, or for `nanos`; may return early.
void WaitForDoorbells(std::span<const Doorbell> doorbells, uint64_t nanos);
void WakeDoorbell(std::atomic<uint32_t>& word);

}  // namespace deja::loopback

#endif  // DEJA_LOOPBACK_RANKS_PROCESS_H_
