// Ends of the process: exit, _exit, quick_exit, exec.
#include <stdarg.h>
#include <stdlib.h>
#include <unistd.h>

#include <atomic>

#include "common/runtime/errno_keeper.h"
#include "preload/calls/life_calls.h"
#include "preload/engine/engine.h"
#include "preload/hooks/export.h"
#include "preload/hooks/process/child_environment.h"
#include "preload/process/guard.h"
#include "preload/process/next_program.h"
#include "preload/process/process_exit.h"
#include "preload/process/threads.h"
#include "preload/symbols/real_symbols.h"

namespace deja::preload {
namespace {

using ExitFn = void (*)(int);

constinit RealFn<ExitFn> real__exit{"_exit"};
constinit RealFn<ExitFn> real__Exit{"_Exit"};
constinit RealFn<ExitFn> real_quick_exit{"quick_exit"};
constinit RealFn<int (*)(const char*, char* const*, char* const*)> real_execve{"execve"};
constinit RealFn<int (*)(const char*, char* const*, char* const*)> real_execvpe{"execvpe"};
constinit RealFn<int (*)(int, char* const*, char* const*)> real_fexecve{"fexecve"};
constinit RealFn<int (*)(int, const char*, char* const*, char* const*, int)> real_execveat{
    "execveat"};

// An engine that was made before main learns the code after the destructors have run.
std::atomic<int> g_exit_code{kExitCodeUnknown};

// It shares its parent's memory, and has no recording of its own.
bool IsVforkChild() {
  return Self().making != 0 && !HasProcessName();
}

// Tells the engine what the process becomes. While it lives the exec has not failed.
class Exec {
 public:
  explicit Exec(NextProgram next) {
    if (InsideDeja()) return;
    const ErrnoKeeper keep;
    if (IsVforkChild()) {
      Self().made_program = next;  // for its parent, who hears of the child
      is_vfork_child_ = true;
      return;
    }
    const Guard guard;
    if (OwnProcessName().is_known) next.FindWhetherRecorded();
    Engine* engine = next.records_itself() ? EngineOfThisProcess() : GetEngine();
    if (engine != nullptr) engine->life->OnExec(next);
  }
  ~Exec() {
    if (is_vfork_child_) Self().made_program = {};
  }
  Exec(const Exec&) = delete;
  Exec& operator=(const Exec&) = delete;

 private:
  bool is_vfork_child_ = false;
};

void TellExit(int code, ExitHow how) {
  // Children that never made an event, and vfork children, leave no trace of their ends.
  Engine* engine = InsideDeja() ? nullptr : EngineOfThisProcess();
  if (engine == nullptr) return;
  const ErrnoKeeper keep;
  Guard guard;
  engine->life->OnExit(code, how);
}

// Whose image comes next: this process's, or that of the vfork child that this is.
NextProcess NextImageHere() {
  const ThreadRecord& self = Self();
  if (IsVforkChild()) return {NextImage::kVforkChild, self.making, self.making_pid};
  return {};
}

void RememberCode(int code, void*) {
  g_exit_code.store(code, std::memory_order_relaxed);
}

__attribute__((destructor)) void OnLibraryEnd() {
  TellExit(g_exit_code.load(std::memory_order_relaxed), ExitHow::kExit);
}

}  // namespace

void WatchForExit() {
  on_exit(&RememberCode, nullptr);
}

void WatchForExitInMain() {
  static constinit std::atomic<bool> watching{false};
  if (watching.load(std::memory_order_relaxed) || watching.exchange(true)) return;
  WatchForExit();
}

}  // namespace deja::preload

using namespace deja::preload;  // NOLINT: the hooks below are this file's only names

DEJA_EXPORT __attribute__((noreturn)) void _exit(int code) {
  TellExit(code, ExitHow::kUnderscoreExit);
  for (;;) real__exit(code);
}

DEJA_EXPORT __attribute__((noreturn)) void _Exit(int code) noexcept {
  TellExit(code, ExitHow::kUnderscoreExit);
  for (;;) real__Exit(code);
}

DEJA_EXPORT __attribute__((noreturn)) void quick_exit(int code) noexcept {
  TellExit(code, ExitHow::kUnderscoreExit);
  for (;;) real_quick_exit(code);
}

// If exec fails it returns, and the process goes on; the engine's later events show that.
DEJA_EXPORT int execve(const char* path, char* const* argv, char* const* env) noexcept {
  const Exec exec({path, argv});
  DEJA_NEXT_ENVIRONMENT(passed, env, NextImageHere());
  return real_execve(path, argv, passed);
}

DEJA_EXPORT int execv(const char* path, char* const* argv) noexcept {
  return execve(path, argv, environ);
}

DEJA_EXPORT int execvpe(const char* file, char* const* argv, char* const* env) noexcept {
  const Exec exec(NextProgram::InPath(file, argv));
  DEJA_NEXT_ENVIRONMENT(passed, env, NextImageHere());
  return real_execvpe(file, argv, passed);
}

DEJA_EXPORT int execvp(const char* file, char* const* argv) noexcept {
  return execvpe(file, argv, environ);
}

DEJA_EXPORT int fexecve(int fd, char* const* argv, char* const* env) noexcept {
  const Exec exec({nullptr, argv});
  DEJA_NEXT_ENVIRONMENT(passed, env, NextImageHere());
  return real_fexecve(fd, argv, passed);
}

DEJA_EXPORT int execveat(int fd, const char* path, char* const* argv, char* const* env,
                         int flags) noexcept {
  const Exec exec({path, argv});
  DEJA_NEXT_ENVIRONMENT(passed, env, NextImageHere());
  return real_execveat(fd, path, argv, passed, flags);
}

// The variadic ones, in terms of the others. The list lives on the stack, as in the C library.
#define DEJA_COLLECT_ARGUMENTS(first)                                               \
  va_list list;                                                                     \
  va_start(list, first);                                                            \
  size_t count = 1;                                                                 \
  while (va_arg(list, char*) != nullptr) ++count;                                   \
  va_end(list);                                                                     \
  auto** argv = static_cast<char**>(__builtin_alloca((count + 1) * sizeof(char*))); \
  va_start(list, first);                                                            \
  argv[0] = const_cast<char*>(first);                                               \
  for (size_t i = 1; i <= count; ++i) argv[i] = va_arg(list, char*)

DEJA_EXPORT int execl(const char* path, const char* first, ...) noexcept {
  DEJA_COLLECT_ARGUMENTS(first);
  va_end(list);
  return execv(path, argv);
}

DEJA_EXPORT int execlp(const char* file, const char* first, ...) noexcept {
  DEJA_COLLECT_ARGUMENTS(first);
  va_end(list);
  return execvp(file, argv);
}

DEJA_EXPORT int execle(const char* path, const char* first, ...) noexcept {
  DEJA_COLLECT_ARGUMENTS(first);
  char* const* env = va_arg(list, char* const*);
  va_end(list);
  return execve(path, argv, env);
}
