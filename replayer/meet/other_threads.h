// A thread that heard of something goes on when the other threads of the process are as far as they
// were when it did.
//
// Any thread, with the guard or without; no errors: what does not come is waited for as long as
// anything moves.
#ifndef DEJA_REPLAYER_MEET_OTHER_THREADS_H_
#define DEJA_REPLAYER_MEET_OTHER_THREADS_H_

#include <cstdint>
#include <functional>

#include "replayer/plan/replay_plan.h"

namespace deja::replayer {

class Session;
struct ThreadState;

// Returns when the others have made that many meetings. Not where nothing moves for three seconds,
// which a line says once, or one of them waits for the calling thread's turn at a lock.
void AwaitMeetings(Session& session, const ThreadState& thread, const MeetingsByThread& met);

// The same until `behind` finds no thread, a position in the plan's, that is not as far as it was
// (kNone).
void AwaitThreads(Session& session, const ThreadState& thread,
                  const std::function<uint32_t()>& behind);

}  // namespace deja::replayer

#endif  // DEJA_REPLAYER_MEET_OTHER_THREADS_H_
