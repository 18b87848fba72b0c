// usage: ends HOW: ends the process in one of the ways there are.
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <string>
#include <thread>

extern char** environ;

namespace {

struct Late {
  ~Late() {
    time(nullptr);
    printf("destructor\n");
  }
} g_late;

volatile int* volatile g_nothing = nullptr;

int Reap(pid_t child) {
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int Children() {
  fflush(stdout);
  pid_t child = fork();
  if (child == 0) {
    time(nullptr);
    _exit(11);
  }
  long codes = Reap(child);
  child = vfork();
  if (child == 0) {
    signal(SIGSEGV, SIG_DFL);
    execl("/bin/sh", "sh", "-c", "exit 12", nullptr);
    _exit(99);
  }
  codes = codes * 100 + Reap(child);
  child = static_cast<pid_t>(syscall(SYS_fork));
  if (child == 0) {
    time(nullptr);
    exit(13);
  }
  codes = codes * 100 + Reap(child);
  const char* argv[] = {"sh", "-c", "exit 14", nullptr};
  posix_spawn(&child, "/bin/sh", nullptr, nullptr, const_cast<char**>(argv), environ);
  codes = codes * 100 + Reap(child);
  child = fork();
  if (child == 0) {
    *g_nothing = 1;
  }
  codes = codes * 1000 + Reap(child);
  printf("children %ld, system %d\n", codes, system("exit 15") >> 8);
  time(nullptr);
  return 6;
}

int Kills() {
  int result = kill(getpid(), 0);
  printf("self %d\n", result);
  signal(SIGUSR1, [](int) { write(1, "usr1\n", 5); });
  kill(getpid(), SIGUSR1);
  pid_t child = fork();
  if (child == 0) {
    pause();
    _exit(0);
  }
  result = kill(getppid(), 0);
  printf("parent %d %s\n", result, result != 0 ? strerror(errno) : "");
  syscall(SYS_kill, child, SIGKILL);
  return Reap(child);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 96;
  std::string how = argv[1];
  setvbuf(stdout, nullptr, _IONBF, 0);
  time(nullptr);
  atexit([] { printf("atexit\n"); });
  if (how == "return") return 3;
  if (how == "exit") exit(4);
  if (how == "_exit") _exit(5);
  if (how == "_Exit") _Exit(5);
  if (how == "quick_exit") quick_exit(7);
  if (how == "pthread_exit") pthread_exit(nullptr);
  if (how == "children") return Children();
  if (how == "kills") return Kills();
  if (how == "thread") {
    std::thread t([] { exit(8); });
    t.join();
  }
  if (how == "exec") execl("/bin/sh", "sh", "-c", "echo executed; exit 9", nullptr);
  if (how == "execle") {
    const char* env[] = {"A=b", nullptr};
    execle("/usr/bin/env", "env", nullptr, env);
  }
  if (how == "execvp") execlp("sh", "sh", "-c", "exit 10", nullptr);
  if (how == "failing exec") {
    int rc = execl("/nonexistent", "x", nullptr);
    printf("exec %d %s\n", rc, strerror(errno));
    time(nullptr);
    return 12;
  }
  return 97;
}
