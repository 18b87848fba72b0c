// Making processes: fork, _Fork, vfork, posix_spawn. Each gets its number on the thread that makes
// it before it exists; the engine hears of it afterwards.
//
// Called before the library's constructor these do what they did without us: the handlers that name
// fork children are registered there. What Deja itself or the real library makes has no number.
#include <pthread.h>
#include <spawn.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>

#include "common/runtime/errno_keeper.h"
#include "common/runtime/spin_lock.h"
#include "preload/calls/process_calls.h"
#include "preload/engine/child_signal.h"
#include "preload/hooks/export.h"
#include "preload/hooks/input.h"
#include "preload/hooks/process/child_environment.h"
#include "preload/hooks/process/spawn.h"
#include "preload/process/threads.h"
#include "preload/symbols/real_symbols.h"

namespace deja::preload {
namespace {

using SpawnFn = int (*)(pid_t*, const char*, const posix_spawn_file_actions_t*,
                        const posix_spawnattr_t*, char* const*, char* const*);

constinit RealFn<pid_t (*)()> real_fork{"fork"};
constinit RealFn<pid_t (*)()> real__Fork{"_Fork"};
constinit RealFn<SpawnFn> real_posix_spawn{"posix_spawn"};
constinit RealFn<SpawnFn> real_posix_spawnp{"posix_spawnp"};

std::atomic<bool> g_enters_at_once{false};

// A vfork child has its parent's memory until it becomes a program.
constinit thread_local uint64_t t_file_calls_at_vfork __attribute__((tls_model("initial-exec"))) =
    0;

// The number of the process that the calling thread is about to make; 0: it has none.
void Begin() {
  ThreadRecord& self = Self();
  self.making = 0;
  self.making_pid = 0;
  self.made_program = {};
  Engine* engine = EngineForChildren();
  if (engine == nullptr) return;
  self.making = ++self.processes;
  Guard guard;
  self.making_pid = engine->processes->RecordedChildPid(self.making);
}

// In the parent. The pid that the program gets.
pid_t End(pid_t pid) {
  ThreadRecord& self = Self();
  const uint32_t number = self.making;
  self.making = 0;
  if (number == 0) return pid;
  if (pid < 0) {
    --self.processes;
    return pid;
  }
  const ErrnoKeeper keep;
  Engine* engine = GetEngine();
  if (engine != nullptr) {
    Guard guard;
    pid = engine->processes->OnChildMade(number, pid, self.made_program);
  }
  return pid;
}

// The program's pid of a process that is not made; 0: it is made.
pid_t Skip() {
  Engine* engine = EngineForChildren();
  if (engine == nullptr) return 0;
  ThreadRecord& self = Self();
  const Guard guard;
  const pid_t told = engine->processes->SkippedChild(self.processes + 1);
  if (told != 0) ++self.processes;
  return told;
}

void EnterChild() {
  g_forks.fetch_add(1, std::memory_order_relaxed);
  ThreadRecord& self = Self();
  if (self.making != 0)
    EnterForkChild(self.making, self.making_pid);
  else
    ForgetProcessName();
  self.making = 0;
  t_child_signal = {};  // its parent's
}

// A fork that does not come through our hook (forkpty, daemon) leaves no time for its pid; the
// child has its name all the same.
void AfterForkInParent() {
  if (InsideDeja()) Self().making = 0;
}

__attribute__((constructor)) void Register() {
  Guard guard;
  (void)OwnProcessName();
  pthread_atfork(Begin, AfterForkInParent, EnterChild);
}

int Spawn(RealFn<SpawnFn>& real, pid_t* pid, const char* path,
          const posix_spawn_file_actions_t* actions, const posix_spawnattr_t* attributes,
          char* const* argv, char* const* env) {
  Begin();
  ThreadRecord& self = Self();
  if (self.making != 0)
    self.made_program =
        &real == &real_posix_spawnp ? NextProgram::InPath(path, argv) : NextProgram(path, argv);
  const NextProcess next{NextImage::kSpawned, self.making, self.making_pid};
  DEJA_NEXT_ENVIRONMENT(passed, env, next);
  pid_t made = 0;
  const int error = real(&made, path, actions, attributes, argv, passed);
  const pid_t told = End(error == 0 ? made : -1);
  if (error == 0 && pid != nullptr) *pid = told;
  return error;
}

}  // namespace

Engine* EngineForChildren() {
  return InsideDeja() || !OwnProcessName().is_known ? nullptr : GetEngine();
}

void EnterForkedChildrenAtOnce() {
  g_enters_at_once.store(true);
}

int SpawnShell(pid_t* pid, const posix_spawn_file_actions_t* actions,
               const posix_spawnattr_t* attributes, char* const* argv) {
  return Spawn(real_posix_spawn, pid, "/bin/sh", actions, attributes, argv, environ);
}

}  // namespace deja::preload

using namespace deja::preload;  // NOLINT: the hooks below are this file's only names

DEJA_EXPORT pid_t fork() noexcept {
  if (const pid_t told = Skip(); told != 0) return told;
  const pid_t pid = real_fork();
  if (pid != 0) return End(pid);
  if (g_enters_at_once.load(std::memory_order_relaxed)) (void)EngineForChildren();
  return 0;
}

// No handlers run for this one.
DEJA_EXPORT pid_t _Fork() noexcept {
  Begin();
  const pid_t pid = real__Fork();
  if (pid != 0) return End(pid);
  EnterChild();
  return 0;
}

// For vfork_hook_x86_64.S.
extern "C" void deja_vfork_begins() {
  const deja::ErrnoKeeper keep;
  t_file_calls_at_vfork = t_child_signal.file_calls;
  Begin();
}

extern "C" pid_t deja_vfork_made(int result) {
  t_child_signal.file_calls = t_file_calls_at_vfork;
  if (result < 0) {
    errno = -result;
    result = -1;
  }
  return End(result);
}

DEJA_EXPORT int posix_spawn(pid_t* pid, const char* path, const posix_spawn_file_actions_t* actions,
                            const posix_spawnattr_t* attributes, char* const* argv,
                            char* const* env) {
  return Spawn(real_posix_spawn, pid, path, actions, attributes, argv, env);
}

DEJA_EXPORT int posix_spawnp(pid_t* pid, const char* file,
                             const posix_spawn_file_actions_t* actions,
                             const posix_spawnattr_t* attributes, char* const* argv,
                             char* const* env) {
  return Spawn(real_posix_spawnp, pid, file, actions, attributes, argv, env);
}
