#include "cli/fence/fence.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>

#include "cli/fence/fence_filter.h"
#include "cli/fence/landlock.h"
#include "cli/fence/late_syscalls.h"
#include "common/os/passed_descriptor.h"

namespace deja::cli {
namespace {

constexpr unsigned long kWaitKillable = 1UL << 5;  // SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV, 5.19

// Those that concern the process's own files, ids and memory stay: a recorded job of root's uses
// them.
constexpr uint64_t kKeptCapabilities =
    1ULL << CAP_CHOWN | 1ULL << CAP_DAC_OVERRIDE | 1ULL << CAP_DAC_READ_SEARCH |
    1ULL << CAP_FOWNER | 1ULL << CAP_FSETID | 1ULL << CAP_KILL | 1ULL << CAP_SETGID |
    1ULL << CAP_SETUID | 1ULL << CAP_NET_BIND_SERVICE | 1ULL << CAP_IPC_LOCK |
    1ULL << CAP_SYS_NICE | 1ULL << CAP_SYS_RESOURCE;

// Only root has any; the others' calls fail, or change nothing.
void DropCapabilities() noexcept {
  constexpr int kMost = 64;
  for (int one = 0; one < kMost; ++one)
    if ((kKeptCapabilities >> one & 1) == 0) prctl(PR_CAPBSET_DROP, one, 0, 0, 0);
  prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct sets[2] = {};
  if (syscall(SYS_capget, &header, sets) != 0) return;
  for (int half = 0; half < 2; ++half) {
    const auto kept = static_cast<uint32_t>(kKeptCapabilities >> (32 * half));
    sets[half].effective &= kept;
    sets[half].permitted &= kept;
    sets[half].inheritable &= kept;
  }
  syscall(SYS_capset, &header, sets);
}

void CloseOthersAtExec() noexcept {
  constexpr unsigned kCloseOnExec = 4;  // CLOSE_RANGE_CLOEXEC
  constexpr int kFirst = STDERR_FILENO + 1;
  constexpr int kMost = 65536;
  if (syscall(kSysCloseRange, kFirst, ~0U, kCloseOnExec) == 0) return;
  for (int fd = kFirst; fd < kMost; ++fd) fcntl(fd, F_SETFD, FD_CLOEXEC);
}

// What is in a file that the program's output goes to stays in it.
void AppendOnly() noexcept {
  for (const int fd : {STDOUT_FILENO, STDERR_FILENO}) {
    struct stat info {};
    const int flags = fcntl(fd, F_GETFL);
    if (flags >= 0 && fstat(fd, &info) == 0 && S_ISREG(info.st_mode))
      fcntl(fd, F_SETFL, flags | O_APPEND);
  }
}

bool Send(int socket, int descriptor) noexcept {
  constexpr std::byte kMessage[] = {std::byte{'f'}};
  return SendWithDescriptor(socket, kMessage, descriptor);
}

}  // namespace

Fence::Fence(const FenceRules& rules) : keeper_(rules.keeper), appends_(!rules.allow_writes) {
  LandlockRules files;
  files.writable = rules.writable;
  files.readable = rules.readable;
  files.fence_reads = rules.fence_reads;
  files.fence_writes = !rules.allow_writes;
  files.fence_network = !rules.allow_network;
  ruleset_ = MakeLandlockRuleset(files);
  FilterRules calls;
  calls.allow_writes = rules.allow_writes;
  calls.allow_network = rules.allow_network;
  calls.unanswered = rules.keeper < 0;
  calls.landlock_abi = ruleset_ < 0 ? 0 : LandlockAbi();
  filter_ = MakeFenceFilter(calls);
}

Fence::~Fence() {
  if (ruleset_ >= 0) close(ruleset_);
}

bool Fence::Enter() const noexcept {
  CloseOthersAtExec();
  if (appends_) AppendOnly();
  DropCapabilities();
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return false;
  if (ruleset_ >= 0 && !EnterLandlock(ruleset_)) return false;
  sock_fprog program{static_cast<unsigned short>(filter_.size()),
                     const_cast<sock_filter*>(filter_.data())};
  // The filter is no secret from the program's own memory.
  const unsigned long flags = SECCOMP_FILTER_FLAG_SPEC_ALLOW;
  if (keeper_ < 0) return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program) == 0;
  const unsigned long listens = flags | SECCOMP_FILTER_FLAG_NEW_LISTENER;
  long listener = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, listens | kWaitKillable, &program);
  if (listener < 0 && errno == EINVAL)
    listener = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, listens, &program);
  return listener >= 0 && Send(keeper_, static_cast<int>(listener));
}

}  // namespace deja::cli
