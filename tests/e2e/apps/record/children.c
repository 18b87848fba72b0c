/* A rank that has children of every kind between its collectives. None of them is a rank; all of
 * them call what Deja hooks. */
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/e2e/apps/record/job.h"

extern char** environ;
pid_t _Fork(void);

static volatile int* volatile bad_address = (volatile int*)0x50;

static void consume(void) {
  char bytes[16];
  if (getrandom(bytes, sizeof bytes, 0) != sizeof bytes) _exit(3);
  if (time(NULL) == 0 || getpid() == 0) _exit(4);
}

static void reap(const char* kind, pid_t child) {
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) != child) {
    perror(kind);
    exit(5);
  }
  printf("rank %d: %s child: %s %d\n", job_rank(), kind, WIFEXITED(status) ? "exit" : "signal",
         WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
}

static void reduce(ncclComm_t comm) {
  float in = 1, out = 0;
  JOB_CHECK(ncclAllReduce(&in, &out, 1, ncclFloat32, ncclSum, comm, NULL));
  if (out != (float)job_size()) exit(6);
}

int main(void) {
  consume();
  ncclComm_t comm = job_communicator();
  reduce(comm);

  pid_t child = fork();
  if (child == 0) {
    consume();
    exit(10);
  }
  reap("fork", child);
  reduce(comm);

  child = fork();
  if (child == 0) {
    consume();
    execl("/bin/sh", "sh", "-c", "exit 11", (char*)NULL);
    _exit(99);
  }
  reap("fork+exec", child);
  reduce(comm);

  child = vfork();
  if (child == 0) {
    execl("/bin/sh", "sh", "-c", "exit 12", (char*)NULL);
    _exit(99);
  }
  reap("vfork+exec", child);
  reduce(comm);

  child = vfork();
  if (child == 0) _exit(13);
  reap("vfork", child);
  reduce(comm);

  child = _Fork();
  if (child == 0) {
    consume();
    _exit(14);
  }
  reap("_Fork", child);
  reduce(comm);

  child = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
  if (child == 0) {
    consume();
    _exit(15);
  }
  reap("clone", child);
  reduce(comm);

  child = fork();
  if (child == 0) {
    consume();
    *bad_address = 1;
    _exit(99);
  }
  reap("crashing", child);
  reduce(comm);

  char* arguments[] = {"sh", "-c", "exit 16", NULL};
  if (posix_spawn(&child, "/bin/sh", NULL, NULL, arguments, environ) != 0) return 7;
  reap("spawned", child);
  reduce(comm);

  printf("rank %d: system: %d\n", job_rank(), WEXITSTATUS(system("exit 17")));
  execl("/nowhere/to/be/found", "x", (char*)NULL);
  reduce(comm);
  JOB_CHECK(ncclCommDestroy(comm));
  return 0;
}
