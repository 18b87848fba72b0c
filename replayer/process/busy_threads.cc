#include "replayer/process/busy_threads.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "common/os/folder_entries.h"
#include "common/process/proc_stat.h"
#include "preload/process/guard.h"

namespace deja::replayer {

bool IsAThreadBusy(int pid) {
  const preload::Guard guard;
  const auto self = static_cast<int>(syscall(SYS_gettid));
  char folder[32];
  snprintf(folder, sizeof folder, "/proc/%d/task", pid);
  bool busy = false;
  ForEachEntry(folder, [&](const char* name, int) {
    if (std::atoi(name) <= 0 || std::atoi(name) == self) return true;
    char path[64];
    snprintf(path, sizeof path, "%s/%.20s/stat", folder, name);
    const char state = ReadProcStat(path).state;
    busy = state == 'R' || state == 'D';
    return !busy;
  });
  return busy;
}

bool IsAnotherThreadBusy() {
  return IsAThreadBusy(static_cast<int>(syscall(SYS_getpid)));
}

}  // namespace deja::replayer
