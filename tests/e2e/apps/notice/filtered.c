// filtered KIND FILE: looks at the machine, forbids itself most system calls, and goes on to work.
//   kill    a call that is not on its list ends it       errno   …is refused (EPERM)
//   tsync   as errno, for all threads, by seccomp        strict  read, write and exit
//   (SECCOMP_MODE_STRICT) deadly  as kill, and makes such a call               mild    forbids
//   ptrace alone
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define ALLOW(name)                                      \
  BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_##name, 0, 1), \
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)

static int Install(int tsync, uint32_t otherwise) {
  struct sock_filter steps[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      ALLOW(read),
      ALLOW(write),
      ALLOW(exit),
      ALLOW(exit_group),
      ALLOW(clock_gettime),
      BPF_STMT(BPF_RET | BPF_K, otherwise),
  };
  struct sock_fprog program = {sizeof steps / sizeof steps[0], steps};
  if (tsync)
    return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program);
  return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0);
}

static int InstallMild(void) {
  struct sock_filter steps[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_ptrace, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  struct sock_fprog program = {sizeof steps / sizeof steps[0], steps};
  return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0);
}

static void Say(const char* text) {
  if (write(STDOUT_FILENO, text, strlen(text)) < 0) _exit(9);
}

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const char* kind = argv[1];
  unsigned drawn = 0;
  if (getrandom(&drawn, sizeof drawn, 0) != sizeof drawn) return 2;
  char line[64];
  snprintf(line, sizeof line, "drawn %u\n", drawn);
  Say(line);
  const int file = open(argv[2], O_RDONLY);
  if (file < 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return 2;
  int failed = 0;
  if (strcmp(kind, "strict") == 0)
    failed = prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT);
  else if (strcmp(kind, "mild") == 0)
    failed = InstallMild();
  else if (strcmp(kind, "kill") == 0 || strcmp(kind, "deadly") == 0)
    failed = Install(0, SECCOMP_RET_KILL_PROCESS);
  else
    failed = Install(strcmp(kind, "tsync") == 0, SECCOMP_RET_ERRNO | EPERM);
  if (failed) return 3;
  char text[64];
  const ssize_t size = read(file, text, sizeof text);
  if (size > 0 && write(STDOUT_FILENO, text, (size_t)size) != size) return 2;
  struct timespec now;
  if (strcmp(kind, "strict") != 0 && clock_gettime(CLOCK_REALTIME, &now) == 0 && now.tv_sec > 0)
    Say("it is later\n");
  if (strcmp(kind, "errno") == 0 || strcmp(kind, "tsync") == 0)
    Say(dup(0) == -1 && errno == EPERM ? "refused\n" : "not refused\n");
  if (strcmp(kind, "deadly") == 0) Say(dup(0) > 0 ? "not killed\n" : "");
  if (strcmp(kind, "strict") == 0) syscall(SYS_exit, 5);
  if (strcmp(kind, "errno") == 0) return 6;
  _exit(7);
}
