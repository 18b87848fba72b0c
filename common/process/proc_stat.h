// What /proc/PID/stat says of a process or thread (proc(5)).
//
// Any thread; no allocation; async-signal-safe.
#ifndef DEJA_COMMON_PROCESS_PROC_STAT_H_
#define DEJA_COMMON_PROCESS_PROC_STAT_H_

#include <cstdint>

namespace deja {

struct ProcStat {
  char state =
      0;  // 'R', 'S', …; 'Z' and 'X' run no code any more; 0: there is no such process, or no /proc
  int32_t parent = 0;
  uint64_t flags = 0;        // the kernel's PF_*
  uint64_t start_ticks = 0;  // when it began, in clock ticks since the machine did

  // It may still run code.
  [[nodiscard]] bool Runs() const { return state != 0 && state != 'Z' && state != 'X'; }
};

// Fields that the kernel does not have stay 0. errno says why there is no state.
ProcStat ReadProcStat(int32_t pid);
// The same from a path, such as /proc/self/task/TID/stat.
ProcStat ReadProcStat(const char* path);

// Process `pid` was made by `ancestor`, by one that `ancestor` has made, and so on. Not so for
// `ancestor` itself, or where a parent on the way has ended and another process has its children.
bool IsBelow(int32_t pid, int32_t ancestor);

}  // namespace deja

#endif  // DEJA_COMMON_PROCESS_PROC_STAT_H_
