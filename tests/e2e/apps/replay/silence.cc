// A rank that reads from a pipe to which only its child could write. The child ends without a word
// at the place that an option names.
//
//   replay_silence [silent]
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>

int main(int argc, char** argv) {
  const bool silent = argc > 1 && strcmp(argv[1], "silent") == 0;
  int ends[2];
  if (pipe(ends) != 0) return 2;
  const pid_t child = fork();
  if (child == 0) _exit(silent || write(ends[1], "x", 1) == 1 ? 0 : 3);
  char byte = 0;
  const ssize_t n = read(ends[0], &byte, 1);
  int status = 0;
  if (waitpid(child, &status, 0) != child) return 2;
  std::printf("read %zd: %c; the child's status is %d\n", n, byte, status);
  return 0;
}
