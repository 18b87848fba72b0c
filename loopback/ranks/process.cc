#include "loopback/ranks/process.h"

#include <poll.h>
#include <signal.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>

#include "common/process/proc_stat.h"
#include "common/runtime/clock_ns.h"
#include "common/runtime/futex.h"

namespace deja::loopback {
namespace {

constexpr long kSysFutexWaitv = 449;
constexpr long kSysPidfdOpen = 434;

// The kernel's struct futex_waitv (Linux 5.16), which older headers lack.
struct FutexWaiter {
  uint64_t value;
  uint64_t address;
  uint32_t flags;
  uint32_t reserved;
};
constexpr uint32_t kFutex32 = 2;
constexpr size_t kMaxWaiters = 128;

timespec ToTimespec(uint64_t nanos) {
  return {static_cast<time_t>(nanos / 1000000000), static_cast<long>(nanos % 1000000000)};
}

}  // namespace

void RandomBytes(void* out, size_t bytes) {
  auto* at = static_cast<char*>(out);
  while (bytes > 0) {
    ssize_t got = syscall(SYS_getrandom, at, bytes, 0);
    if (got <= 0) {
      if (errno == EINTR) continue;
      // No entropy source: time and pid still tell two communicators apart.
      uint64_t value = MonotonicNanos() * 0x9e3779b97f4a7c15u + static_cast<uint64_t>(getpid());
      got = static_cast<ssize_t>(std::min(bytes, sizeof value));
      std::memcpy(at, &value, static_cast<size_t>(got));
    }
    at += got;
    bytes -= static_cast<size_t>(got);
  }
}

uint64_t MonotonicNanos() {
  return ClockNs(CLOCK_MONOTONIC);
}

ProcessId ThisProcess() {
  ProcessId self;
  self.pid = static_cast<int32_t>(syscall(SYS_getpid));
  self.start_time = ReadProcStat(self.pid).start_ticks;
  struct stat info {};
  if (::stat("/proc/self/ns/pid", &info) == 0) self.pid_namespace = info.st_ino;
  return self;
}

bool HasEnded(const ProcessId& process) {
  static const uint64_t own_namespace = ThisProcess().pid_namespace;
  if (process.pid <= 0 || process.pid_namespace != own_namespace) return false;
  const ProcStat stat = ReadProcStat(process.pid);
  if (stat.state == 0) {
    // It is gone, or there is no /proc, or no file descriptor is left to look into it.
    return kill(process.pid, 0) != 0 && errno == ESRCH;
  }
  // The number has been given to another process.
  if (process.start_time != 0 && stat.start_ticks != process.start_time) return true;
  if (stat.Runs()) return false;
  // Its first thread has ended. Others may go on, which only a pidfd tells.
  int fd = static_cast<int>(syscall(kSysPidfdOpen, process.pid, 0));
  if (fd < 0) return true;
  pollfd item{fd, POLLIN, 0};
  bool ended = poll(&item, 1, 0) > 0;
  close(fd);
  return ended;
}

void WaitForDoorbells(std::span<const Doorbell> doorbells, uint64_t nanos) {
  static std::atomic<bool> have_waitv{true};
  if (doorbells.empty()) {
    timespec time = ToTimespec(nanos);
    nanosleep(&time, nullptr);
    return;
  }
  if (doorbells.size() > 1 && have_waitv.load(std::memory_order_relaxed)) {
    FutexWaiter waiters[kMaxWaiters];
    size_t count = std::min(doorbells.size(), kMaxWaiters);
    for (size_t i = 0; i < count; ++i)
      waiters[i] = {doorbells[i].value, reinterpret_cast<uint64_t>(doorbells[i].word), kFutex32, 0};
    timespec deadline = ToTimespec(MonotonicNanos() + nanos);
    long woken = syscall(kSysFutexWaitv, waiters, count, 0, &deadline, CLOCK_MONOTONIC);
    if (woken >= 0 || (errno != ENOSYS && errno != EPERM)) return;
    have_waitv.store(false, std::memory_order_relaxed);
  }
  // One futex can be waited for at a time: look after the others often.
  if (doorbells.size() > 1) nanos = std::min<uint64_t>(nanos, 200000);
  FutexWaitNs(*doorbells[0].word, doorbells[0].value, nanos, FutexScope::kShared);
}

void WakeDoorbell(std::atomic<uint32_t>& word) {
  FutexWake(word, INT_MAX, FutexScope::kShared);
}

}  // namespace deja::loopback
