#include "preload/hooks/process/filter_hooks.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdarg.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <iterator>

#include "common/runtime/errno_keeper.h"
#include "preload/calls/life_calls.h"
#include "preload/engine/engine.h"
#include "preload/engine/signals.h"
#include "preload/hooks/export.h"
#include "preload/hooks/input.h"
#include "preload/process/filter_rules.h"
#include "preload/process/guard.h"
#include "preload/process/process_name.h"
#include "preload/symbols/quiet_lookups.h"
#include "preload/symbols/real_symbols.h"

namespace deja::preload {
namespace {

constinit RealFn<int (*)(int, unsigned long, unsigned long, unsigned long, unsigned long)>
    real_prctl{"prctl"};

// The kernel takes filters of these processes only.
bool MayInstall() {
  return real_prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1 || geteuid() == 0;
}

// `refused`: a call that Deja makes on the program's threads and that is about to be refused there.
// Nothing of Deja's may make a call on them any more.
void Before(const char* refused, bool& for_all) {
  Engine* engine = EngineForHook();
  if (engine == nullptr) return;
  const ErrnoKeeper keep;
  const Guard guard;
  engine->life->OnFilter(refused, for_all);
  StopPassingOn();
  RemoveCrashHandlers();
  LookUpWithoutKernel();
  SwitchEngineOff();
}

void BeforeFilter(const void* filter, bool& for_all) {
  const auto* program = static_cast<const sock_fprog*>(filter);
  // A call that asks what the kernel can do passes none.
  if (program == nullptr || InsideDeja() || !MayInstall()) return;
  if (const char* refused = RefusedBy({program->filter, program->len})) Before(refused, for_all);
}

// What the strict mode lets through, as a filter; what it does not, ends the process by SIGSYS
// instead of SIGKILL.
int InstallStrictFilter() {
  constexpr auto kPlaceOfNumber = static_cast<uint32_t>(offsetof(seccomp_data, nr));
  constexpr uint32_t kAllowed[] = {SYS_read, SYS_write, SYS_exit, SYS_rt_sigreturn};
  constexpr size_t kCount = std::size(kAllowed);
  sock_filter steps[kCount + 3] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, kPlaceOfNumber)};
  for (size_t i = 0; i < kCount; ++i)
    steps[i + 1] =
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kAllowed[i], static_cast<uint8_t>(kCount - i), 0);
  steps[kCount + 1] = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
  steps[kCount + 2] = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
  const sock_fprog program = {static_cast<unsigned short>(std::size(steps)), steps};
  return real_prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, reinterpret_cast<unsigned long>(&program),
                    0, 0);
}

bool IsStrictBehindHiddenFilter(int option, unsigned long mode) {
  if (option != PR_SET_SECCOMP || mode != SECCOMP_MODE_STRICT) return false;
  const Engine* engine = EngineForHook();
  return engine != nullptr && engine->life->HasHiddenFilter();
}

}  // namespace

void BeforePrctl(long option, long mode, const void* filter) {
  if (option != PR_SET_SECCOMP) return;
  // A thread in the strict mode can end only itself, and the process ends with its last thread's
  // code. So no other thread of Deja's may be there then.
  bool for_all = mode == SECCOMP_MODE_STRICT;
  if (mode == SECCOMP_MODE_STRICT) Before("all but read, write and exit", for_all);
  if (mode == SECCOMP_MODE_FILTER) BeforeFilter(filter, for_all);
}

long BeforeSeccomp(long operation, long flags, const void* filter) {
  if (operation == SECCOMP_SET_MODE_STRICT)
    BeforePrctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT, filter);
  if (operation != SECCOMP_SET_MODE_FILTER) return flags;
  bool for_all = (flags & SECCOMP_FILTER_FLAG_TSYNC) != 0;
  BeforeFilter(filter, for_all);
  return for_all ? flags : flags & ~static_cast<long>(SECCOMP_FILTER_FLAG_TSYNC);
}

}  // namespace deja::preload

using namespace deja::preload;  // NOLINT: the hook below is this file's only name

DEJA_EXPORT int prctl(int option, ...) noexcept {
  unsigned long a[4];
  va_list list;
  va_start(list, option);
  for (unsigned long& one : a) one = va_arg(list, unsigned long);  // those not passed are not used
  va_end(list);
  // NOLINTNEXTLINE(performance-no-int-to-ptr): as the kernel has it
  const auto* filter = reinterpret_cast<const void*>(a[1]);
  const bool as_filter = IsStrictBehindHiddenFilter(option, a[0]);
  BeforePrctl(option, static_cast<long>(a[0]), filter);
  if (as_filter) return InstallStrictFilter();
  return real_prctl(option, a[0], a[1], a[2], a[3]);
}
