#include "common/process/process_identity.h"

#include <signal.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "common/os/small_file.h"
#include "common/process/proc_stat.h"
#include "common/runtime/futex.h"

namespace deja {
namespace {

int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

}  // namespace

ProcessIdentity ThisProcess() {
  ProcessIdentity identity;
  identity.pid = static_cast<uint32_t>(getpid());
  identity.start_ticks = StartTicks(identity.pid);
  char text[64];
  const size_t length = ReadSmallFile("/proc/sys/kernel/random/boot_id", text, sizeof text);
  size_t digits = 0;
  for (size_t i = 0; i < length && digits < 32; ++i) {
    const int digit = HexDigit(text[i]);
    if (digit < 0) continue;
    uint8_t& byte = identity.boot_id[digits / 2];
    byte = static_cast<uint8_t>(byte << 4 | digit);
    ++digits;
  }
  struct stat info {};
  if (stat("/proc/self/ns/pid", &info) == 0) identity.pid_namespace = info.st_ino;
  return identity;
}

bool IsAlive(const ProcessIdentity& identity) {
  if (identity.pid == 0) return false;
  const ProcessIdentity self = ThisProcess();
  if (identity.boot_id != self.boot_id) return false;
  if (identity.pid_namespace != self.pid_namespace) return true;
  const ProcStat stat = ReadProcStat(static_cast<int32_t>(identity.pid));
  if (stat.state == 0) {
    // No /proc to look at: ask the kernel in the one other way there is.
    return self.start_ticks == 0 &&
           (kill(static_cast<pid_t>(identity.pid), 0) == 0 || errno == EPERM);
  }
  if (!stat.Runs()) return false;
  return identity.start_ticks == 0 || stat.start_ticks == identity.start_ticks;
}

bool Runs(uint32_t pid) {
  return ReadProcStat(static_cast<int32_t>(pid)).Runs();
}

uint64_t StartTicks(uint32_t pid) {
  return ReadProcStat(static_cast<int32_t>(pid)).start_ticks;
}

void RandomBytes(uint8_t* out, unsigned bytes) {
  if (getrandom(out, bytes, GRND_NONBLOCK) == static_cast<ssize_t>(bytes)) return;
  uint64_t seed =
      MonotonicNs() ^ static_cast<uint64_t>(getpid()) << 32 ^ reinterpret_cast<uintptr_t>(&bytes);
  for (unsigned i = 0; i < bytes; ++i) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    out[i] = static_cast<uint8_t>(seed >> 56);
  }
}

}  // namespace deja
