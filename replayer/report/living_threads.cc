#include "replayer/report/living_threads.h"

#include <climits>
#include <cstdio>

#include "common/os/folder_entries.h"
#include "common/process/proc_stat.h"

namespace deja::replayer {
namespace {

// Linux's PF_EXITING, in the flags of proc(5)'s stat. The kernel sets it before it wakes the
// joining thread.
constexpr uint64_t kExiting = 0x4;

bool IsExiting(const char* tid) {
  char path[sizeof "/proc/self/task//stat" + NAME_MAX];
  snprintf(path, sizeof path, "/proc/self/task/%s/stat", tid);
  const ProcStat stat = ReadProcStat(path);
  return stat.state == 0 || (stat.flags & kExiting) != 0;
}

}  // namespace

uint64_t LivingThreads() {
  uint64_t living = 0;
  ForEachEntry("/proc/self/task", [&](const char* name, int) {
    living += name[0] != '.' && !IsExiting(name) ? 1 : 0;
    return true;
  });
  return living;
}

}  // namespace deja::replayer
