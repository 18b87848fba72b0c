// The last words of a process that a signal ends. Everything here is async-signal-safe.
#include <ucontext.h>

#include "format/layout/mark.h"
#include "preload/cuda/device.h"
#include "preload/process/fault_escape.h"
#include "preload/process/guard.h"
#include "preload/stack/python_stack.h"
#include "preload/stack/stack.h"
#include "recorder/assembly/recorder_engine.h"

namespace deja::recorder {
namespace {

uint64_t InterruptedPc(void* ucontext) {
  if (ucontext == nullptr) return 0;
  auto* context = static_cast<ucontext_t*>(ucontext);
#if defined(__x86_64__)
  return static_cast<uint64_t>(context->uc_mcontext.gregs[REG_RIP]);
#elif defined(__aarch64__)
  return context->uc_mcontext.pc;
#else
  return 0;
#endif
}

void TellPythonModules(Recording& rec) {
  preload::TellPythonModules(
      [](uint32_t module, std::string_view path, void* context) {
        format::ModuleLoaded event;
        event.module = module;
        event.path = path;
        static_cast<Recording*>(context)->writer.WriteInSignal(event);
      },
      &rec);
}

}  // namespace

void RecorderEngine::OnCrash(int signal, const siginfo_t* info, void* ucontext) {
  ErrnoKeeper keep;
  Recording* rec = Made();
  if (rec == nullptr || rec->off() || !rec->writer.live() || !rec->IsThisProcess()) return;
  rec->ends.store(true, std::memory_order_relaxed);
  // Not if it happened in the middle of that.
  if (preload::t_guard_depth <= 1) InputFiles::FinishInSignal(*rec);
  // The thread that takes in what streams deliver goes on while this handler runs.
  constexpr uint32_t kMostMs = 1000;
  preload::TheDevice().Drain(kMostMs);
  format::Crash crash;
  crash.signal = static_cast<uint32_t>(signal);
  if (info != nullptr) {
    crash.code = info->si_code;
    // Which members of siginfo_t mean something depends on where the signal came from.
    if (info->si_code == SI_USER || info->si_code == SI_TKILL || info->si_code == SI_QUEUE)
      crash.sender_pid = info->si_pid;
    else
      crash.address = reinterpret_cast<uint64_t>(info->si_addr);
  }
  if (ucontext != nullptr) preload::CaptureStackInSignal(ucontext, crash.frames);
  preload::Frames frames = crash.frames;
  auto add = [](void* to) { preload::AddPythonFramesInSignal(*static_cast<preload::Frames*>(to)); };
  if (preload::WithoutFault(add, &frames)) {
    crash.frames = frames;
    TellPythonModules(*rec);
  }
  crash.pc = InterruptedPc(ucontext);
  rec->writer.WriteInSignal(crash);
  // The signal's action is the default one, otherwise the program would have handled it: the rank
  // ends here. Its parent may not be Deja's launcher, which would tell the other ranks.
  if (rec->is_rank())
    format::LeaveMarkIfNoneIsNew(rec->config.trace_dir,
                                 signal == SIGTERM ? "a rank received a signal to end: SIGTERM"
                                                   : "a rank was ended by a signal");
  rec->ends.store(false, std::memory_order_relaxed);
}

}  // namespace deja::recorder
