#include "replayer/forks/companions.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <utility>

#include "format/scratch/scratch_names.h"
#include "replayer/forks/children.h"
#include "replayer/forks/chosen_child.h"

namespace deja::replayer {
namespace {

// How often the process's first thread has begun to wait, if it waits now.
std::string WaitOf(pid_t pid) {
  char path[64];
  snprintf(path, sizeof path, "/proc/%d/task/%d/status", pid, pid);
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return {};
  char text[4096];
  const ssize_t n = read(fd, text, sizeof text - 1);
  close(fd);
  text[n < 0 ? 0 : n] = '\0';
  const char* waits = strstr(text, "\nState:\tS");
  const char* count = strstr(text, "\nvoluntary_ctxt_switches:");
  return waits == nullptr || count == nullptr ? std::string() : std::string(count);
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
