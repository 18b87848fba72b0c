// EndProcess: ends the process at once, without running anything of the program's. Any thread.
#ifndef DEJA_REPLAYER_PROCESS_END_PROCESS_H_
#define DEJA_REPLAYER_PROCESS_END_PROCESS_H_

#include <sys/syscall.h>
#include <unistd.h>

namespace deja::replayer {

[[noreturn]] inline void EndProcess(int code) {
  for (;;) syscall(SYS_exit_group, code);
}

}  // namespace deja::replayer

#endif  // DEJA_REPLAYER_PROCESS_END_PROCESS_H_
