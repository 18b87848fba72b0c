// system and popen: the C library's own ones spawn by inner calls that no hook sees, so these are
// made of ours. What they do to signals, descriptors and cancellation is what POSIX asks for.
//
// Where there is no engine the real ones are called.
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "common/runtime/errno_keeper.h"
#include "preload/hooks/export.h"
#include "preload/hooks/input.h"
#include "preload/hooks/process/spawn.h"
#include "preload/symbols/real_symbols.h"

namespace deja::preload {
namespace {

constinit RealFn<int (*)(const char*)> real_system{"system"};
constinit RealFn<FILE* (*)(const char*, const char*)> real_popen{"popen"};
constinit RealFn<int (*)(FILE*)> real_pclose{"pclose"};

// Several threads may be in system at once: the first one changes what SIGINT and SIGQUIT do, the
// last one puts it back.
pthread_mutex_t g_signals_mutex = PTHREAD_MUTEX_INITIALIZER;
int g_users = 0;
struct sigaction g_interrupt;
struct sigaction g_quit;

void IgnoreSignals() {
  pthread_mutex_lock(&g_signals_mutex);
  if (g_users++ == 0) {
    struct sigaction ignore {};
    ignore.sa_handler = SIG_IGN;
    sigaction(SIGINT, &ignore, &g_interrupt);
    sigaction(SIGQUIT, &ignore, &g_quit);
  }
  pthread_mutex_unlock(&g_signals_mutex);
}

struct RunningShell {
  pid_t pid = 0;
  sigset_t mask{};
};

void RestoreSignals(const RunningShell& shell) {
  pthread_mutex_lock(&g_signals_mutex);
  if (--g_users == 0) {
    sigaction(SIGINT, &g_interrupt, nullptr);
    sigaction(SIGQUIT, &g_quit, nullptr);
  }
  pthread_mutex_unlock(&g_signals_mutex);
  pthread_sigmask(SIG_SETMASK, &shell.mask, nullptr);
}

pid_t WaitFor(pid_t pid, int* status) {
  pid_t result = 0;
  do {
    result = waitpid(pid, status, 0);
  } while (result < 0 && errno == EINTR);
  return result;
}

// The thread is cancelled while it waits.
void OnCancel(void* shell) {
  auto* running = static_cast<RunningShell*>(shell);
  int state = 0;
  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
  kill(running->pid, SIGKILL);
  WaitFor(running->pid, nullptr);
  pthread_setcancelstate(state, nullptr);
  RestoreSignals(*running);
}

int StartShell(const char* command, RunningShell& shell) {
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t defaults;
  sigemptyset(&defaults);
  if (g_interrupt.sa_handler != SIG_IGN) sigaddset(&defaults, SIGINT);
  if (g_quit.sa_handler != SIG_IGN) sigaddset(&defaults, SIGQUIT);
  posix_spawnattr_setsigmask(&attributes, &shell.mask);
  posix_spawnattr_setsigdefault(&attributes, &defaults);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
  char name[] = "sh";
  char option[] = "-c";
  char* const argv[] = {name, option, const_cast<char*>(command), nullptr};
  const int error = SpawnShell(&shell.pid, nullptr, &attributes, argv);
  posix_spawnattr_destroy(&attributes);
  return error;
}

int RunShell(const char* command) {
  RunningShell shell;
  IgnoreSignals();
  sigset_t child;
  sigemptyset(&child);
  sigaddset(&child, SIGCHLD);
  pthread_sigmask(SIG_BLOCK, &child, &shell.mask);
  int status = -1;
  if (StartShell(command, shell) == 0) {
    pthread_cleanup_push(OnCancel, &shell);
    if (WaitFor(shell.pid, &status) != shell.pid) status = -1;
    pthread_cleanup_pop(0);
  } else {
    status = W_EXITCODE(127, 0);  // as if the shell had not been found
  }
  const ErrnoKeeper keep;
  RestoreSignals(shell);
  return status;
}

// The streams of popen.
struct Stream {
  FILE* file = nullptr;
  pid_t pid = 0;
};
constexpr size_t kStreams = 256;
Stream g_streams[kStreams];
pthread_mutex_t g_streams_mutex = PTHREAD_MUTEX_INITIALIZER;

struct Mode {
  bool read = false;
  bool write = false;
  bool close_on_exec = false;
};

bool ParseMode(const char* text, Mode& mode) {
  for (; text != nullptr && *text != '\0'; ++text) {
    if (*text == 'r')
      mode.read = true;
    else if (*text == 'w')
      mode.write = true;
    else if (*text == 'e')
      mode.close_on_exec = true;
    else
      return false;
  }
  return mode.read != mode.write;
}

// With the streams' lock held; `ends`: of the program, of the child.
pid_t StartPiped(const char* command, const int (&ends)[2], int target) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], target);
  // POSIX: the streams of earlier calls are closed in the new process.
  for (const Stream& other : g_streams)
    if (other.file != nullptr && fileno(other.file) != target)
      posix_spawn_file_actions_addclose(&actions, fileno(other.file));
  char name[] = "sh";
  char option[] = "-c";
  char* const argv[] = {name, option, const_cast<char*>(command), nullptr};
  pid_t pid = -1;
  const int error = SpawnShell(&pid, &actions, nullptr, argv);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) errno = error;
  return error == 0 ? pid : -1;
}

FILE* OpenPiped(const char* command, const Mode& mode, Stream& stream) {
  int made[2];
  if (pipe2(made, O_CLOEXEC) != 0) return nullptr;
  const int ends[2] = {made[mode.read ? 0 : 1], made[mode.read ? 1 : 0]};
  FILE* file = fdopen(ends[0], mode.read ? "r" : "w");
  pid_t pid = -1;
  if (file != nullptr) pid = StartPiped(command, ends, mode.read ? STDOUT_FILENO : STDIN_FILENO);
  const int saved_errno = errno;
  close(ends[1]);
  if (pid < 0) {
    if (file != nullptr)
      fclose(file);
    else
      close(ends[0]);
    errno = saved_errno;
    return nullptr;
  }
  if (!mode.close_on_exec) fcntl(ends[0], F_SETFD, 0);
  stream = {file, pid};
  errno = saved_errno;
  return file;
}

// A slot whose stream the program has closed by fclose, or that is free.
Stream* FreeStream() {
  for (Stream& stream : g_streams)
    if (stream.file == nullptr) return &stream;
  return nullptr;
}

}  // namespace
}  // namespace deja::preload

using namespace deja::preload;  // NOLINT: the hooks below are this file's only names

DEJA_EXPORT int system(const char* command) {
  if (EngineForChildren() == nullptr) return real_system(command);
  if (command == nullptr) return RunShell("exit 0") == 0 ? 1 : 0;
  return RunShell(command);
}

DEJA_EXPORT FILE* popen(const char* command, const char* text) {
  Mode mode;
  if (EngineForChildren() == nullptr || !ParseMode(text, mode)) return real_popen(command, text);
  pthread_mutex_lock(&g_streams_mutex);
  Stream* stream = FreeStream();
  FILE* file = stream != nullptr ? OpenPiped(command, mode, *stream) : nullptr;
  // The same address again: the program has closed the other one by fclose.
  for (Stream& other : g_streams)
    if (file != nullptr && &other != stream && other.file == file) other = {};
  pthread_mutex_unlock(&g_streams_mutex);
  return stream != nullptr ? file : real_popen(command, text);
}

DEJA_EXPORT int pclose(FILE* file) {
  pid_t pid = 0;
  pthread_mutex_lock(&g_streams_mutex);
  for (Stream& stream : g_streams) {
    if (file == nullptr || stream.file != file) continue;
    pid = stream.pid;
    stream = {};
  }
  pthread_mutex_unlock(&g_streams_mutex);
  if (pid == 0) return real_pclose(file);
  fclose(file);
  int status = -1;
  return WaitFor(pid, &status) == pid ? status : -1;
}
