// Ending: how a replay ends.
//
// A thread that makes a call which the recording entered and never left waits (Park). If the
// recorded process then crashed or exited by itself, so will this one. Otherwise, once every
// recorded event has been made and nothing moves any more, that is the result: the end of the
// recording. A watcher thread notices. It starts with the first thread that parks, or when the last
// recorded event has been made and nothing says how the process ended.
//
// One per process, any thread.
#ifndef DEJA_REPLAYER_CORE_ENDING_H_
#define DEJA_REPLAYER_CORE_ENDING_H_

#include <cstdint>
#include <string_view>

#include "preload/calls/life_calls.h"
#include "replayer/core/session.h"

namespace deja::replayer {

// Waits for the end of the replay. `entered`: the recorded call that was never left; null when the
// recording of this thread simply stops before the call.
[[noreturn]] void Park(Session& session, ThreadState& thread, std::string_view api, uint32_t comm,
                       uint64_t comm_seq, const RecordedCall* entered);

// What else concerns a child of the rank that a signal ended. Deja's thread that watches calls it.
class SignalledChild {
 public:
  // Again and again, once the child has made all events of its recording.
  virtual void OnAllMade() = 0;
  // It has, and nothing moves in it. Waits for the signal; returns if that is not to come.
  virtual void AwaitSignal() = 0;

 protected:
  ~SignalledChild() = default;
};
// `child` outlives the process's threads.
void SetSignalledChild(SignalledChild* child);
// Null: it has no recording.
SignalledChild* SignalledChildOfThisProcess();

// In a fork child, before its session: nothing has happened yet.
void ForgetEnding();

// From now on the process only waits for the child that is the rank, and ends as that does.
void EndWithChild();

// From now on the program ends by itself, and what it does is not seen: the recording went no
// further. Deja's own threads end before, so that its end is the process's. `why`: for the verdict.
void LetProgramEnd(Session& session, std::string_view why);

// The last recorded event has been made.
void OnAllEventsMade(Session& session);

// The process ends by itself: exit, _exit, exec. Reports once.
void ReportExit(Session& session, int code, preload::ExitHow how);

// A fatal signal. Async-signal-safe.
void ReportCrash(Session& session, int signal, const siginfo_t* info, void* ucontext);

// Ends the replay: `message` says what cannot be served.
[[noreturn]] void FailReplay(Session& session, ThreadState& thread, std::string_view message,
                             uint32_t recorded_stack);

}  // namespace deja::replayer

#endif  // DEJA_REPLAYER_CORE_ENDING_H_
