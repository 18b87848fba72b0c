// usage: forks HOW: uses NCCL, then in a child made by fork, _Fork or clone, then once more.
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "use.h"

int main(int argc, char** argv) {
  struct nccl_functions nccl = LINKED_NCCL;
  const char* how = argc > 1 ? argv[1] : "fork";
  use_nccl(&nccl);
  pid_t child = strcmp(how, "clone") == 0 ? (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0) : fork();
  if (child == 0) {
    puts("child");
    use_nccl(&nccl);
    use_nccl(&nccl);
    _exit(0);
  }
  waitpid(child, NULL, 0);
  return use_nccl(&nccl);
}
