#include "replayer/meet/ending_signal.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <ctime>

#include "preload/calls/life_calls.h"
#include "replayer/core/ending.h"
#include "replayer/core/session.h"
#include "replayer/meet/stillness.h"
#include "replayer/process/without_interpreter.h"

namespace deja::replayer {
namespace {

// The recorded thread's next and last act was to end the process.
bool OnlyEnds(Session& session, const ThreadState& thread) {
  if (thread.recorded == kNone || session.options().child.empty()) return false;
  const ReplayPlan& plan = session.plan();
  const RecordedEnd& end = plan.end();
  const Progress& progress = session.progress();
  return end.kind == EndKind::kExit && end.thread == thread.recorded &&
         end.exit_how == static_cast<uint32_t>(preload::ExitHow::kUnderscoreExit) &&
         progress.RemainingOf(thread.recorded) == 0 &&
         progress.MeetingsOf(thread.recorded) == plan.threads()[thread.recorded].meetings;
}

}  // namespace

bool AwaitEndingSignal(Session& session, const ThreadState& thread) {
  constexpr uint64_t kQuietNs = 2'000 * Stillness::kMs;
  constexpr uint64_t kMostNs = 10'000 * Stillness::kMs;
  if (!OnlyEnds(session, thread)) return false;
  SignalledChild* child = SignalledChildOfThisProcess();
  bool has_come = false;
  WithoutInterpreter apart(true);
  const uint64_t begun = MonotonicNs();
  for (Stillness still(session);
       !has_come && still.ns_of_the_watch() < kQuietNs && MonotonicNs() - begun < kMostNs;
       still.IsTimeToLook()) {
    if (child != nullptr) child->OnAllMade();
    const timespec tick = SpanOf(Stillness::kTickNs);
    has_come = syscall(SYS_nanosleep, &tick, nullptr) != 0;
  }
  apart.End();
  return has_come;
}

}  // namespace deja::replayer
