#include "replayer/companions.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstring>
#include <ctime>

#include "replayer/children.h"
#include "replayer/chosen_child.h"

namespace deja::replayer {
namespace {

constexpr char kList[] = "/companions";

// State of the process's first thread, as /proc has it; 0: it is gone.
char StateOf(pid_t pid) {
  char path[40];
  snprintf(path, sizeof path, "/proc/%d/stat", pid);
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return 0;
  char text[256];
  const ssize_t n = read(fd, text, sizeof text - 1);
  close(fd);
  text[n < 0 ? 0 : n] = '\0';
  const char* name_end = strrchr(text, ')');
  return name_end == nullptr || name_end[1] == '\0' ? '\0' : name_end[2];
}

uint64_t TimeUsedBy(pid_t pid) {
  // The kernel's number for the processor time of a process.
  const auto clock = static_cast<clockid_t>((~static_cast<unsigned>(pid) << 3) | 2);
  timespec used{};
  syscall(SYS_clock_gettime, clock, &used);
  return static_cast<uint64_t>(used.tv_sec) * 1000000000 + static_cast<uint64_t>(used.tv_nsec);
}

}  // namespace

std::string FindCompanionFolder(const std::string& scratch, std::string_view name) {
  return FindListed(scratch + kList, name);
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
  uint64_t used = 0;
  for (int quiet = 0; quiet < kQuietTicks;) {
    syscall(SYS_nanosleep, &kTick, nullptr);
    const uint64_t now = TimeUsedBy(parent);
    quiet = StateOf(parent) == 'S' && now == used ? quiet + 1 : 0;
    used = now;
  }
}

}  // namespace deja::replayer
