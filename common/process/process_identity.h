// Which process, of which boot and pid namespace: what tells a process from a later one that got
// the same number. Plain values; any thread.
#ifndef DEJA_COMMON_PROCESS_PROCESS_IDENTITY_H_
#define DEJA_COMMON_PROCESS_PROCESS_IDENTITY_H_

#include <array>
#include <cstdint>

namespace deja {

struct ProcessIdentity {
  uint32_t pid = 0;
  uint64_t start_ticks = 0;  // 0: unknown
  std::array<uint8_t, 16> boot_id{};
  uint64_t pid_namespace = 0;

  friend bool operator==(const ProcessIdentity&, const ProcessIdentity&) = default;
};

// The calling process's identity. A part that /proc does not tell (it may not be mounted) is zero.
ProcessIdentity ThisProcess();

// True if the process exists, or if this cannot be known because it lives in another pid namespace
// of this boot. A process of an earlier boot or another machine does not exist here.
bool IsAlive(const ProcessIdentity& identity);

// A process of this machine, by its number. False if there is none, or if it is a zombie, which
// writes no more.
bool Runs(uint32_t pid);
// When it began, in clock ticks since the machine did; 0 if there is no such process.
uint64_t StartTicks(uint32_t pid);

// `bytes` random bytes; never fails (falls back to clocks and addresses).
void RandomBytes(uint8_t* out, unsigned bytes);

}  // namespace deja

#endif  // DEJA_COMMON_PROCESS_PROCESS_IDENTITY_H_
