#include "replayer/forks/companions.h"

#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <csignal>
#include <ctime>
#include <utility>

#include "format/scratch/scratch_names.h"
#include "replayer/forks/children.h"
#include "replayer/forks/chosen_child.h"
#include "replayer/process/process_status.h"

namespace deja::replayer {
namespace {

// How often the process's first thread has begun to wait, if it waits now.
std::string WaitOf(pid_t pid) {
  const ProcessStatus status(pid);
  return status.Field("State").starts_with('S')
             ? std::string(status.Field("voluntary_ctxt_switches"))
             : std::string();
}

}  // namespace

std::string FindCompanionFolder(const std::string& scratch, std::string_view name) {
  return FindListed(scratch + format::kCompanionsFile, name);
}

bool MayMakeCompanions() {
  return !IsInDebugger() || IsChildChosen();
}

void EndWithParent(pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (syscall(SYS_getppid) != parent) syscall(SYS_exit_group, 0);
}

void AwaitStandingParent(pid_t parent) {
  constexpr timespec kTick{0, 20'000'000};
  constexpr int kQuietTicks = 15;
  std::string before;
  for (int quiet = 0; quiet < kQuietTicks;) {
    syscall(SYS_nanosleep, &kTick, nullptr);
    std::string now = WaitOf(parent);
    quiet = !now.empty() && now == before ? quiet + 1 : 0;
    before = std::move(now);
  }
}

}  // namespace deja::replayer
