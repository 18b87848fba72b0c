#include "replayer/report/living_threads.h"

#include <climits>
#include <cstdio>
#include <cstring>

#include "common/os/folder_entries.h"
#include "common/os/small_file.h"

namespace deja::replayer {
namespace {

// Linux's PF_EXITING, in the flags of proc(5)'s stat. The kernel sets it before it wakes who joins.
constexpr unsigned long kExiting = 0x4;

bool IsExiting(const char* tid) {
  char path[sizeof "/proc/self/task//stat" + NAME_MAX];
  snprintf(path, sizeof path, "/proc/self/task/%s/stat", tid);
  char text[512];
  if (ReadSmallFile(path, text, sizeof text) == 0) return true;
  // Behind the name, which may hold anything: state, parent, group, session, terminal, its group,
  // flags.
  const char* rest = strrchr(text, ')');
  unsigned long flags = 0;
  return rest != nullptr && sscanf(rest, ") %*c %*d %*d %*d %*d %*d %lu", &flags) == 1 &&
         (flags & kExiting) != 0;
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
