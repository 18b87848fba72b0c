#include "replayer/forks/chosen_child.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <ctime>

#include "common/env_vars.h"
#include "format/scratch/scratch_names.h"
#include "preload/process/own_variables.h"
#include "replayer/core/replay_variables.h"
#include "replayer/process/claim.h"
#include "replayer/process/process_status.h"

namespace deja::replayer {
namespace {

constexpr int kReplaced[] = {STDOUT_FILENO, STDERR_FILENO};

// As the process began: the program may change its environment before it forks.
const std::string& Chosen() {
  static const auto* chosen = new std::string(Text(env::kChosenChild));  // never destroyed
  return *chosen;
}

bool Announce(const std::string& path) {
  const std::string fresh = path + ".new";
  const int fd = open(fresh.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (fd < 0) return false;
  const bool written = dprintf(fd, "%ld\n", syscall(SYS_getpid)) > 0;
  close(fd);
  return written && rename(fresh.c_str(), path.c_str()) == 0;
}

}  // namespace

bool IsChildChosen() {
  return !Chosen().empty();
}

bool IsChosenChild(std::string_view name) {
  return IsChildChosen() && name == Chosen();
}

bool AwaitsDebugger(std::string_view name) {
  return IsChildChosen() ? IsChosenChild(name) : name.empty() && preload::OwnFlag(env::kWait);
}

bool IsInDebugger() {
  static const bool is = preload::OwnFlag(env::kGdb);
  return is;
}

void TakeShownOutputs(const std::string& scratch) {
  for (size_t i = 0; i < std::size(kReplaced); ++i) {
    struct stat dropped {};
    if (stat((scratch + format::kDroppedOutputs[i]).c_str(), &dropped) != 0) continue;
    const int shown = open((scratch + format::kShownOutputs[i]).c_str(), O_WRONLY | O_CLOEXEC);
    for (const int fd : kReplaced) {
      struct stat now {};
      const bool is_it =
          fstat(fd, &now) == 0 && now.st_dev == dropped.st_dev && now.st_ino == dropped.st_ino;
      if (is_it && shown >= 0) syscall(SYS_dup3, shown, fd, 0);
    }
    if (shown >= 0) close(shown);
  }
}

void AwaitDebugger(const std::string& scratch) {
  if (!IsInDebugger()) return;
  // Where only ancestors may trace a process (Yama), it says which others may.
  prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
  if (!Announce(scratch + format::kWaitsForDebugger)) return;
  constexpr timespec kTick{0, 5'000'000};
  // "0": no process traces this one.
  while (ProcessStatus(OwnPid()).Field("TracerPid") == "0") syscall(SYS_nanosleep, &kTick, nullptr);
}

}  // namespace deja::replayer
