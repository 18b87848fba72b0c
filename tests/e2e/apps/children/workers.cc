// A rank whose processes draw random bytes, look at the clock and at their identity, and end in
// every way. Their texts are this program's output, in an order that the program itself makes sure
// of.
//
//     workers [--before-comm]    the first ones are forked before there is a communicator
//     workers --waits            one alone, which its parent ends while it waits
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "tests/e2e/apps/record/job.h"

extern char** environ;

namespace {

constexpr int kDraws = 5;

struct Draw {
  uint64_t random;
  int64_t time;
  pid_t pid;
  pid_t parent;
};

Draw MakeDraw() {
  Draw draw{};
  if (getrandom(&draw.random, sizeof draw.random, 0) != sizeof draw.random) _exit(90);
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  draw.time = now.tv_sec * 1000000000 + now.tv_nsec;
  draw.pid = getpid();
  draw.parent = getppid();
  return draw;
}

void Say(const char* who, const Draw& draw) {
  printf("%s: %016" PRIx64 " %" PRId64 " process %d of %d\n", who, draw.random, draw.time, draw.pid,
         draw.parent);
  fflush(stdout);
}

void SayEnd(const char* who, pid_t pid, int status) {
  printf("%s: process %d %s %d\n", who, pid, WIFEXITED(status) ? "exit" : "signal",
         WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
  fflush(stdout);
}

struct Worker {
  pid_t pid;
  int from;
};

// Draws for ever, or `draws` times, and then ends as `end` says.
template <typename End>
Worker Start(int draws, End end) {
  int ends[2];
  if (pipe(ends) != 0) exit(80);
  fflush(stdout);
  pid_t pid = fork();
  if (pid == 0) {
    close(ends[0]);
    for (int i = 0; draws < 0 || i < draws; ++i) {
      Draw draw = MakeDraw();
      if (write(ends[1], &draw, sizeof draw) != sizeof draw) _exit(91);
    }
    end();
    _exit(92);
  }
  close(ends[1]);
  return {pid, ends[0]};
}

void Hear(const char* who, const Worker& worker) {
  Draw draw;
  for (int i = 0; i < kDraws; ++i) {
    if (read(worker.from, &draw, sizeof draw) != sizeof draw) exit(81);
    Say(who, draw);
  }
}

void Reap(const char* who, const Worker& worker) {
  int status = 0;
  if (waitpid(worker.pid, &status, 0) != worker.pid) exit(82);
  SayEnd(who, worker.pid, status);
  close(worker.from);
}

void Ends() {
  Worker exits = Start(kDraws, [] { exit(3); });
  Worker exits_at_once = Start(kDraws, [] { _exit(4); });
  Worker is_killed = Start(-1, [] {});
  Worker is_terminated = Start(-1, [] {});
  Worker crashes = Start(kDraws, [] { *reinterpret_cast<volatile int*>(0x50) = 1; });
  // What it says itself comes before anything that follows.
  Worker has_one = Start(0, [] {
    Worker inner = Start(kDraws, [] { _exit(5); });
    Hear("grandchild", inner);
    Reap("grandchild", inner);
    exit(6);
  });
  Reap("nested", has_one);
  Hear("exit", exits);
  Hear("_exit", exits_at_once);
  Hear("killed", is_killed);
  Hear("terminated", is_terminated);
  Hear("crash", crashes);
  kill(is_killed.pid, SIGKILL);
  kill(is_terminated.pid, SIGTERM);
  Reap("exit", exits);
  Reap("_exit", exits_at_once);
  Reap("killed", is_killed);
  Reap("terminated", is_terminated);
  Reap("crash", crashes);
}

// Ends well when its parent ends it, as torch's loader workers do.
void OnSigterm(int, siginfo_t* info, void*) {
  _exit(info->si_pid == getppid() ? 10 : 11);
}

// As the workers wait for work.
void WaitInTurns() {
  void* shared =
      mmap(nullptr, sizeof(sem_t), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  auto* never = static_cast<sem_t*>(shared);
  sem_init(never, 1, 0);
  while (true) {
    timespec until{};
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 5;
    sem_timedwait(never, &until);
  }
}

// Another thread computes, so that the process does not look as if it had reached its end.
void WaitBesideThread() {
  std::thread([] {
    for (volatile unsigned i = 0;;) i = i + 1;
  }).detach();
  WaitInTurns();
}

template <typename Wait>
void EndedByItsParent(Wait waits) {
  struct sigaction action {};
  struct sigaction before {};
  action.sa_sigaction = &OnSigterm;
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGTERM, &action, &before);
  Worker worker = Start(kDraws, waits);
  sigaction(SIGTERM, &before, nullptr);
  Hear("ended by its parent", worker);
  kill(worker.pid, SIGTERM);
  Reap("ended by its parent", worker);
}

// Which of them ends first is a matter of luck.
void Race() {
  for (int i = 0; i < 4; ++i) {
    fflush(stdout);
    if (fork() == 0) {
      Draw draw = MakeDraw();
      for (uint64_t j = 0; j < (draw.random & 0xfffff); ++j) asm volatile("");
      _exit(i);
    }
  }
  for (int i = 0; i < 4; ++i) {
    int status = 0;
    pid_t pid = wait(&status);
    SayEnd("race", pid, status);
  }
}

void Run(const char* who, pid_t pid) {
  int status = 0;
  if (pid < 0 || waitpid(pid, &status, 0) != pid) exit(83);
  SayEnd(who, pid, status);
}

const char* const kShell = "echo $$ $PPID; date +%N; od -An -N8 -tx1 /dev/urandom; exit 7";

void Images() {
  char sh[] = "sh";
  char option[] = "-c";
  char* argv[] = {sh, option, const_cast<char*>(kShell), nullptr};
  fflush(stdout);
  pid_t pid = fork();
  if (pid == 0) {
    execv("/bin/sh", argv);
    _exit(99);
  }
  Run("fork and exec", pid);
  pid = vfork();
  if (pid == 0) {
    execl("/nowhere/at/all", "sh", nullptr);
    execl("/bin/sh", "sh", "-c", kShell, nullptr);
    _exit(99);
  }
  Run("vfork and exec", pid);
  pid = vfork();
  if (pid == 0) _exit(8);
  Run("vfork", pid);
  if (posix_spawn(&pid, "/bin/sh", nullptr, nullptr, argv, environ) != 0) exit(84);
  Run("spawn", pid);
  char* nothing[] = {nullptr};
  if (posix_spawnp(&pid, "sh", nullptr, nullptr, argv, nothing) != 0) exit(85);
  Run("spawn with an environment of its own", pid);
  printf("system: %d\n", WEXITSTATUS(system(kShell)));
  FILE* pipe = popen(kShell, "r");
  char line[200];
  while (pipe != nullptr && fgets(line, sizeof line, pipe) != nullptr) printf("popen: %s", line);
  printf("popen: %d\n", WEXITSTATUS(pclose(pipe)));
  fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  bool before = argc > 1 && strcmp(argv[1], "--before-comm") == 0;
  Say("main", MakeDraw());
  if (argc > 1 && strcmp(argv[1], "--waits") == 0) {
    EndedByItsParent(WaitBesideThread);
    return 0;
  }
  if (before) Ends();
  ncclComm_t comm = job_communicator();
  float in = 1;
  float out = 0;
  JOB_CHECK(ncclAllReduce(&in, &out, 1, ncclFloat32, ncclSum, comm, nullptr));
  if (!before) Ends();
  Race();
  Images();
  std::thread([] {
    Worker worker = Start(kDraws, [] { _exit(9); });
    Hear("of a thread", worker);
    Reap("of a thread", worker);
  }).join();
  EndedByItsParent([] {
    while (true) pause();
  });
  JOB_CHECK(ncclAllReduce(&in, &out, 1, ncclFloat32, ncclSum, comm, nullptr));
  Say("main", MakeDraw());
  JOB_CHECK(ncclCommDestroy(comm));
  return 0;
}
