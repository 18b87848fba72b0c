#include "preload/hooks/child_signal_places.h"

#include "common/runtime/errno_keeper.h"
#include "preload/calls/process_calls.h"
#include "preload/engine/engine.h"
#include "preload/process/guard.h"

namespace deja::preload {

bool BeginCallAtPlace() {
  if (InsideDeja() || IsBorrowedMemory() || t_child_signal.ends_told_wait) return false;
  const ErrnoKeeper keep;
  const Engine* engine = EngineOfThisProcess();
  return engine != nullptr && engine->processes->BeforeCallAtPlace();
}

void EndFileCall() {
  ChildSignal& signal = t_child_signal;
  if (InsideDeja() && static_cast<int>(t_guard_depth) != signal.handler_depth) return;
  ++signal.file_calls;  // the hook of vfork takes those of the child back
  // The handler's own calls come before the event of the wait that the signal has ended.
  if (InsideDeja() || signal.ends_told_wait) return;
  if (!signal.waits && !signal.came && !g_counts_file_calls.load(std::memory_order_relaxed)) return;
  if (IsBorrowedMemory()) return;  // a system call
  const ErrnoKeeper keep;
  if (const Engine* engine = EngineOfThisProcess()) engine->processes->AfterFileCall();
}

bool BeginSleep() {
  if (InsideDeja() || IsBorrowedMemory()) return false;
  const ErrnoKeeper keep;
  const Engine* engine = EngineOfThisProcess();
  if (engine == nullptr) return false;
  ++t_child_signal.sleeps;
  t_child_signal.was_kept = false;
  return engine->processes->EndsSleep();
}

bool GoesOnToSleep() {
  const ErrnoKeeper keep;
  const Engine* engine = EngineOfThisProcess();
  t_child_signal.was_kept = false;
  return engine != nullptr && !engine->processes->EndsSleep();
}

void EndSleep() {
  ++t_child_signal.sleeps;
  if (!g_counts_file_calls.load(std::memory_order_relaxed)) return;
  const ErrnoKeeper keep;
  if (const Engine* engine = EngineOfThisProcess()) engine->processes->AfterSleep();
}

}  // namespace deja::preload
