#include "replayer/report/program_output.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdio>

namespace deja::replayer {
namespace {

// Above what programs use: the numbers that they are given do not change.
constexpr int kFirstKept = 600;
constexpr int kOutputs[] = {STDOUT_FILENO, STDERR_FILENO};
int g_kept[] = {-1, -1};

}  // namespace

void FlushOutput() {
  if (ftrylockfile(stdout) != 0) return;
  fflush_unlocked(stdout);
  funlockfile(stdout);
}

// System calls, since the program's descriptors do not change for it.
void MuteOutput() {
  const auto nowhere =
      static_cast<int>(syscall(SYS_openat, AT_FDCWD, "/dev/null", O_WRONLY | O_CLOEXEC, 0));
  if (nowhere < 0) return;
  for (const int fd : kOutputs) {
    int& kept = g_kept[fd - STDOUT_FILENO];
    if (kept >= 0) continue;
    kept = static_cast<int>(syscall(SYS_fcntl, fd, F_DUPFD_CLOEXEC, kFirstKept));
    if (kept >= 0) syscall(SYS_dup3, nowhere, fd, 0);
  }
  syscall(SYS_close, nowhere);
}

void UnmuteOutput() {
  if (g_kept[0] < 0 && g_kept[1] < 0) return;
  FlushOutput();
  for (const int fd : kOutputs) {
    int& kept = g_kept[fd - STDOUT_FILENO];
    if (kept < 0) continue;
    syscall(SYS_dup3, kept, fd, 0);
    syscall(SYS_close, kept);
    kept = -1;
  }
}

bool IsKeptOutput(int fd) {
  return fd >= 0 && (fd == g_kept[0] || fd == g_kept[1]);
}

}  // namespace deja::replayer
