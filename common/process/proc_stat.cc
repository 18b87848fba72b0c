#include "common/process/proc_stat.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "common/os/small_file.h"

namespace deja {

ProcStat ReadProcStat(int32_t pid) {
  char path[40];
  snprintf(path, sizeof path, "/proc/%d/stat", pid);
  return ReadProcStat(path);
}

bool IsBelow(int32_t pid, int32_t ancestor) {
  // Numbers of ended processes are given out again while this looks: no walk is longer than this.
  constexpr int kMostSteps = 1000;
  for (int step = 0; step < kMostSteps && pid > 0; ++step) {
    pid = ReadProcStat(pid).parent;
    if (pid == ancestor) return pid > 0;
  }
  return false;
}

ProcStat ReadProcStat(const char* path) {
  ProcStat result;
  char text[1024];
  if (ReadSmallFile(path, text, sizeof text) == 0) return result;
  // Fields are counted from the last ')': the name before it may hold anything.
  const char* at = strrchr(text, ')');
  if (at == nullptr || at[1] == '\0') return result;
  at += 2;
  result.state = *at;
  for (int field = 3; at != nullptr; ++field) {
    if (field == 4) result.parent = static_cast<int32_t>(strtol(at, nullptr, 10));
    if (field == 9) result.flags = strtoull(at, nullptr, 10);
    if (field == 22) {
      result.start_ticks = strtoull(at, nullptr, 10);
      break;
    }
    at = strchr(at, ' ');
    if (at != nullptr) ++at;
  }
  return result;
}

}  // namespace deja
