#include "preload/engine/child_signal.h"

#include <csignal>

#include "common/runtime/errno_keeper.h"
#include "preload/engine/engine.h"
#include "preload/engine/process_calls.h"
#include "preload/process/guard.h"

namespace deja::preload {

constinit std::atomic<void (*)(int)> g_child_signal_handler{nullptr};
constinit thread_local ChildSignal t_child_signal __attribute__((tls_model("initial-exec")));
constinit std::atomic<bool> g_counts_file_calls{false};

void RunChildSignalHandler() {
  auto* handler = g_child_signal_handler.load(std::memory_order_acquire);
  if (handler != nullptr) handler(SIGCHLD);
}

void BeginCallAtPlace() {
  if (InsideDeja() || IsBorrowedMemory()) return;
  const ErrnoKeeper keep;
  if (const Engine* engine = EngineOfThisProcess()) engine->processes->BeforeCallAtPlace();
}

void EndFileCall() {
  if (InsideDeja() || IsBorrowedMemory()) return;
  ChildSignal& signal = t_child_signal;
  ++signal.file_calls;
  if (!signal.waits && !signal.came && !g_counts_file_calls.load(std::memory_order_relaxed)) return;
  const ErrnoKeeper keep;
  if (const Engine* engine = EngineOfThisProcess()) engine->processes->AfterFileCall();
}

}  // namespace deja::preload
