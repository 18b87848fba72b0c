// A rank that reads from a pipe to which only its child could write. What an option says of the
// child: it ends without a word, sleeps for an hour, or for three seconds before it writes.
//
//   replay_silence [silent|asleep|late]
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>

int main(int argc, char** argv) {
  const char* option = argc > 1 ? argv[1] : "";
  int ends[2];
  if (pipe(ends) != 0) return 2;
  const pid_t child = fork();
  if (child == 0) {
    if (strcmp(option, "silent") == 0) _exit(0);
    if (strcmp(option, "asleep") == 0) sleep(3600);
    if (strcmp(option, "late") == 0) sleep(3);
    _exit(write(ends[1], "x", 1) == 1 ? 0 : 3);
  }
  char byte = 0;
  const ssize_t n = read(ends[0], &byte, 1);
  int status = 0;
  if (waitpid(child, &status, 0) != child) return 2;
  std::printf("read %zd: %c; the child's status is %d\n", n, byte, status);
  return 0;
}
