// LifeCalls: what an engine does when threads and the process begin and end.
//
// Any thread. The rules of engine.h hold.
#ifndef DEJA_PRELOAD_CALLS_LIFE_CALLS_H_
#define DEJA_PRELOAD_CALLS_LIFE_CALLS_H_

#include <csignal>
#include <cstdint>
#include <string_view>

#include "preload/process/next_program.h"

namespace deja::preload {

// OnExit comes from a destructor, and the exit code is not known.
inline constexpr int kExitCodeUnknown = INT32_MIN;

enum class ExitHow : uint32_t { kExit = 0, kUnderscoreExit = 1, kExec = 2 };

class LifeCalls {
 public:
  // On the new thread, before the program's start routine / after it (also when it is cancelled).
  virtual void OnThreadStart() = 0;
  virtual void OnThreadEnd() = 0;

  // A fatal signal arrived on this thread. Async-signal-safe. The handler chains afterwards.
  virtual void OnCrash(int signal, const siginfo_t* info, void* ucontext) = 0;
  // The process is about to end in an orderly way, or to be replaced. May be called more than once.
  virtual void OnExit(int code, ExitHow how) = 0;
  // It is about to become another program. Where that fails, the process goes on.
  virtual void OnExec([[maybe_unused]] const NextProgram& next) { OnExit(0, ExitHow::kExec); }
  // In the child after any kind of fork, before the child's first event.
  virtual void OnForkChild() = 0;

  // The program does something that is not recorded; `what` says it with what to do. A replay ends
  // there, unless there only may be such a thing. `function`: of a newer NCCL than Deja knows,
  // which a replay must have for the program; or empty.
  virtual void OnNotRecorded(std::string_view what, bool may_be, std::string_view function) {
    (void)what, (void)may_be, (void)function;
  }
  // The program is about to install a seccomp filter that refuses `call`, one that Deja makes on
  // the program's threads. This is the engine's last call. `for_all`: the filter is for all
  // threads, or the process will end with its last thread's code (the strict mode). The engine may
  // make it one for the calling thread alone, or ends its own.
  virtual void OnFilter(const char* call, bool& for_all) { (void)call, (void)for_all; }
  // The process is behind a filter that the program does not know of (a replay's fence).
  [[nodiscard]] virtual bool HasHiddenFilter() const { return false; }

 protected:
  ~LifeCalls() = default;
};

}  // namespace deja::preload

#endif  // DEJA_PRELOAD_CALLS_LIFE_CALLS_H_
