#include "cli/replay/watch/guardian.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <initializer_list>

#include "cli/replay/watch/replay_processes.h"
#include "format/trace/temporary_folder.h"

namespace deja::cli {
namespace {

// What the user may send to the command to end it.
constexpr int kPassedOn[] = {SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2};
constexpr int kCommandIsGone = SIGUSR1;  // to the guardian

sigset_t SetOf(const auto& signals) {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : signals) sigaddset(&set, signal);
  return set;
}

[[noreturn]] void EndLike(int status) {
  if (WIFEXITED(status)) _exit(WEXITSTATUS(status));
  const int signal = WTERMSIG(status);
  struct sigaction standard {};
  standard.sa_handler = SIG_DFL;
  sigaction(signal, &standard, nullptr);
  const sigset_t one = SetOf(std::initializer_list<int>{signal});
  sigprocmask(SIG_UNBLOCK, &one, nullptr);
  // The worker has left a core file if there is to be one.
  prctl(PR_SET_DUMPABLE, 0);
  kill(getpid(), signal);
  _exit(128 + signal);
}

// ---- The process that the user has started

// Ctrl-Z stops it with the others.
[[noreturn]] void WaitForGuardian(pid_t guardian, int worker_pipe, sigset_t blocked) {
  for (const int signal : kPassedOn) sigaddset(&blocked, signal);
  sigaddset(&blocked, SIGCHLD);
  sigprocmask(SIG_SETMASK, &blocked, nullptr);
  pid_t worker = 0;
  if (read(worker_pipe, &worker, sizeof worker) != sizeof worker) worker = 0;
  for (;;) {
    int status = 0;
    const pid_t ended = waitpid(guardian, &status, WNOHANG);
    if (ended == guardian) {
      int of_worker = status;
      if (read(worker_pipe, &of_worker, sizeof of_worker) != sizeof of_worker) of_worker = status;
      EndLike(of_worker);
    }
    sigset_t awaited = SetOf(kPassedOn);
    sigaddset(&awaited, SIGCHLD);
    siginfo_t info{};
    const int signal = sigwaitinfo(&awaited, &info);
    // The terminal sends its signals to the worker as well.
    if (signal > 0 && signal != SIGCHLD && info.si_code <= 0 && worker > 0) kill(worker, signal);
  }
}

// ---- The guardian

// A moment to end as it does when it is asked to.
void EndWorker(pid_t worker, int& status) {
  constexpr int kSteps = 500;
  constexpr useconds_t kStepUs = 20000;
  kill(worker, SIGTERM);
  for (int step = 0; step < kSteps; ++step) {
    if (waitpid(worker, &status, WNOHANG) == worker) return;
    usleep(kStepUs);
  }
  kill(worker, SIGKILL);
  while (waitpid(worker, &status, 0) < 0 && errno == EINTR) {
  }
}

[[noreturn]] void Guard(pid_t command, pid_t worker, int worker_pipe) {
  const sigset_t awaited = SetOf(std::initializer_list<int>{SIGCHLD, kCommandIsGone});
  int status = 0;
  while (waitpid(worker, &status, WNOHANG) != worker) {
    if (getppid() != command) {
      EndWorker(worker, status);
      break;
    }
    sigwaitinfo(&awaited, nullptr);
  }
  EndDescendants(0);
  if (!WIFEXITED(status)) format::RemoveAbandonedFolders();
  if (write(worker_pipe, &status, sizeof status) != sizeof status) _exit(EXIT_FAILURE);
  _exit(EXIT_SUCCESS);
}

}  // namespace

void ContinueGuarded() {
  int pipe_ends[2];
  if (pipe2(pipe_ends, O_CLOEXEC) != 0) return;
  const pid_t command = getpid();
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  sigprocmask(SIG_SETMASK, &all, &before);
  struct sigaction of_children {};
  struct sigaction standard {};
  standard.sa_handler = SIG_DFL;
  sigaction(SIGCHLD, &standard, &of_children);
  const pid_t guardian = fork();
  if (guardian > 0) {
    close(pipe_ends[1]);
    WaitForGuardian(guardian, pipe_ends[0], before);
  }
  if (guardian == 0) {
    close(pipe_ends[0]);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    prctl(PR_SET_PDEATHSIG, kCommandIsGone);
    const pid_t self = getpid();
    const pid_t worker = fork();
    // The worker stays in the user's group, to which the terminal belongs.
    if (worker != 0) setpgid(0, 0);
    if (worker > 0 && write(pipe_ends[1], &worker, sizeof worker) == sizeof worker)
      Guard(command, worker, pipe_ends[1]);
    if (worker != 0) _exit(EXIT_FAILURE);
    close(pipe_ends[1]);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != self) _exit(128 + SIGTERM);
  } else {
    close(pipe_ends[0]);
    close(pipe_ends[1]);
  }
  sigaction(SIGCHLD, &of_children, nullptr);
  sigprocmask(SIG_SETMASK, &before, nullptr);
}

}  // namespace deja::cli
