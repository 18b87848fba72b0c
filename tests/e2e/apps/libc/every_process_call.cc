// Processes, signals and who runs the program, by every name that the C library has for them.
#include <fcntl.h>
#include <grp.h>
#include <pthread.h>
#include <pwd.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstring>

#include "tests/e2e/apps/libc/every_call.h"

namespace {

volatile sig_atomic_t g_signals = 0;

void Count(int) {
  g_signals = g_signals + 1;
}

template <typename Exec>
int ChildCode(Exec exec) {
  const pid_t child = fork();
  if (child == 0) {
    exec();
    _exit(99);
  }
  int status = 0;
  return waitpid(child, &status, 0) == child && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

void Execs() {
  char* const argv[] = {const_cast<char*>("sh"), const_cast<char*>("-c"),
                        const_cast<char*>("exit $CODE"), nullptr};
  char* const env[] = {const_cast<char*>("CODE=7"), nullptr};
  Show("execvpe", ChildCode([&] { execvpe("sh", argv, env); }));
  Show("fexecve", ChildCode([&] { fexecve(open("/bin/sh", O_RDONLY), argv, env); }));
  Show("execveat", ChildCode([&] { execveat(AT_FDCWD, "/bin/sh", argv, env, 0); }));
}

void Waits() {
  int status = 0;
  rusage usage{};
  pid_t child = fork();
  if (child == 0) _exit(3);
  Show("wait3", wait3(&status, 0, &usage) == child ? WEXITSTATUS(status) : -1);
  child = fork();
  if (child == 0) _exit(4);
  Show("wait4", wait4(child, &status, 0, &usage) == child ? WEXITSTATUS(status) : -1);
  child = fork();
  if (child == 0) {
    pause();
    _exit(5);
  }
  Show("setpgid", setpgid(child, child));
  Show("getpgid", getpgid(child) == child);
  const int descriptor = Old<int(pid_t, unsigned)>("pidfd_open")(child, 0);
  Show("pidfd_open", descriptor >= 0);
  close(descriptor);
  kill(child, SIGTERM);
  Show("waitpid", waitpid(child, &status, 0) == child ? WTERMSIG(status) : -1);
}

void Signals() {
  using Handler = void (*)(int);
  using Set = Handler(int, Handler);
  for (const char* name : {"bsd_signal", "ssignal", "__sysv_signal", "sigset"}) {
    Old<Set>(name)(SIGUSR1, Count);
    raise(SIGUSR1);
    Show(name, g_signals);
  }
  signal(SIGUSR2, Count);
  sigval value{};
  value.sival_int = 1;
  Show("sigqueue", sigqueue(getpid(), SIGUSR2, value));
  Show("sigqueue", g_signals);
}

void Users() {
  char buffer[4096];
  passwd entry{};
  passwd* found = nullptr;
  Show("getpwuid_r",
       getpwuid_r(getuid(), &entry, buffer, sizeof buffer, &found) == 0 && found != nullptr
           ? found->pw_name
           : "error");
  Show("getpwnam_r",
       getpwnam_r("root", &entry, buffer, sizeof buffer, &found) == 0 && found != nullptr
           ? found->pw_dir
           : "error");
  Show("getlogin_r", getlogin_r(buffer, sizeof buffer) == 0 ? buffer : "none");
}

void Limits() {
  rlimit64 limit{};
  Show("getrlimit64", getrlimit64(RLIMIT_NOFILE, &limit));
  ShowOfThisRun("getrlimit64", std::to_string(limit.rlim_cur));
  cpu_set_t one;
  CPU_ZERO(&one);
  sched_getaffinity(0, sizeof one, &one);
  Show("pthread_setaffinity_np", pthread_setaffinity_np(pthread_self(), sizeof one, &one));
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  Show("pthread_attr_setaffinity_np", pthread_attr_setaffinity_np(&attributes, sizeof one, &one));
  pthread_attr_destroy(&attributes);
}

}  // namespace

int main() {
  std::setvbuf(stdout, nullptr, _IONBF, 0);
  Execs();
  Waits();
  Signals();
  Users();
  Limits();
  return 0;
}
