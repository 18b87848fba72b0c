#include "preload/hooks/process/filter_hooks.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdarg.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/runtime/errno_keeper.h"
#include "preload/engine/engine.h"
#include "preload/engine/life_calls.h"
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

}  // namespace

void BeforePrctl(long option, long mode, const void* filter) {
  bool for_all = false;
  if (option != PR_SET_SECCOMP) return;
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
  BeforePrctl(option, static_cast<long>(a[0]), filter);
  return real_prctl(option, a[0], a[1], a[2], a[3]);
}
