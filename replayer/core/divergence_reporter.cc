#include "replayer/core/divergence_reporter.h"

#include "preload/process/threads.h"
#include "replayer/process/end_process.h"
#include "replayer/report/live_stack.h"
#include "replayer/report/position.h"
#include "replayer/report/program_output.h"

namespace deja::replayer {

Divergence DivergenceReporter::New(DivergenceKind kind) {
  Divergence divergence;
  divergence.kind = kind;
  divergence.thread = preload::Self().name;
  divergence.has_step = deja_replay_state.has_step != 0;
  divergence.step = deja_replay_state.step;
  return divergence;
}

void DivergenceReporter::Diverge(ThreadState& thread, Divergence divergence,
                                 uint32_t recorded_stack) {
  divergence.recorded_stack = RecordedStack(recorded_stack);
  divergence.live_stack = LiveStack();
  divergences_.fetch_add(1);
  divergence.WriteTo(report_);
  if (live_trace_ != nullptr) live_trace_->Note("divergence at " + divergence.Describe());
  if (options_.stop_on_divergence || deja_replay_state.watched != 0)
    stops_.Stop(thread, kDejaStopDivergence, "divergence at " + divergence.Describe(), {},
                recorded_stack);
  if (!options_.stop_on_divergence) return;
  report_.Write(CountedLine{CountersNow()});
  FlushOutput();  // what the program has printed so far is worth seeing
  EndProcess(4);
}

void DivergenceReporter::ReportSent(std::string what) {
  Divergence divergence = New(DivergenceKind::kSent);
  divergence.what = std::move(what);
  divergence.live_stack = LiveStack();
  divergences_.fetch_add(1);
  divergence.WriteTo(report_);
  Say(divergence.what);
}

std::vector<StackLine> DivergenceReporter::RecordedStack(uint32_t stack) const {
  std::vector<StackLine> lines;
  for (const format::StackFrame& frame : plan_.Stack(stack)) {
    const RecordedModule* module = plan_.Module(frame.module);
    if (module == nullptr)
      lines.push_back({"", "", frame.offset});
    else
      lines.push_back({module->path, module->build_id, frame.offset});
  }
  return lines;
}

void DivergenceReporter::CountCompared(bool equal) {
  __atomic_fetch_add(&deja_replay_state.digests_compared, 1, __ATOMIC_RELAXED);
  if (!equal) __atomic_fetch_add(&deja_replay_state.digests_different, 1, __ATOMIC_RELAXED);
}

CountersPart DivergenceReporter::CountersNow() const {
  const deja_replay_state_t& state = deja_replay_state;
  CountersPart counters;
  counters.operations = __atomic_load_n(&state.operations, __ATOMIC_RELAXED);
  if (!options_.fold.empty()) counters.computed = computed_.load();
  counters.digests_compared = __atomic_load_n(&state.digests_compared, __ATOMIC_RELAXED);
  counters.digests_different = __atomic_load_n(&state.digests_different, __ATOMIC_RELAXED);
  counters.divergences = divergences_.load();
  counters.remaining = progress_.remaining();
  if (plan_.end().thread != kNone)
    counters.remaining_on_last_thread = progress_.RemainingOf(plan_.end().thread);
  if (state.has_step != 0) counters.step = state.step;
  return counters;
}

}  // namespace deja::replayer
