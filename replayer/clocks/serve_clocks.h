// How clocks are served, and what is computed from them.
//
// SessionClocks is a part of Session, made with it, never destroyed. Any thread, within the guard.
#ifndef DEJA_REPLAYER_CLOCKS_SERVE_CLOCKS_H_
#define DEJA_REPLAYER_CLOCKS_SERVE_CLOCKS_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "format/tail/clock_run.h"
#include "preload/calls/clock_calls.h"
#include "preload/calls/input_calls.h"
#include "replayer/clocks/thread_clocks.h"
#include "replayer/core/session.h"

namespace deja::replayer {

struct SessionClocks {
  static constexpr SessionPart kPart = SessionPart::kClocks;

  SessionClocks(const ReplayPlan& plan, ClockMode mode);

  ProcessClocks process;
};

// What is known of the clocks of one thread; a part of its ThreadState.
struct ClockThread {
  static constexpr ThreadPart kPart = ThreadPart::kClocks;

  std::unique_ptr<ThreadClocks> clocks;  // from its first look at one
  // Times that a process has used: what was served last, and what was true then.
  std::map<InputKey, std::pair<std::string, std::string>> last_usage;
};

inline ClockThread& ClocksOf(ThreadState& thread) {
  return thread.Of<ClockThread>();
}

int64_t ServeClock(Session& session, ThreadState& thread, format::ClockSource source,
                   int64_t live_ns);
// The program has not seen the thread's last reading, if it was one of `source`.
void TakeClockBack(Session& session, ThreadState& thread, format::ClockSource source,
                   preload::UnseenReading made_for);
// times and getrusage.
void ServeUsage(Session& session, ThreadState& thread, preload::InputCall& call);
int64_t DeadlineOffset(Session& session, ThreadState& thread, int clock, int64_t deadline_ns);

}  // namespace deja::replayer

#endif  // DEJA_REPLAYER_CLOCKS_SERVE_CLOCKS_H_
