// A child of the rank whose handler of a signal called _exit, as PyTorch's loader ends a worker by
// SIGTERM. The call in which the signal found the thread has no end in the recording. A replay
// waits there for the signal, though something else may be there by then.
//
// Any thread.
#ifndef DEJA_REPLAYER_MEET_ENDING_SIGNAL_H_
#define DEJA_REPLAYER_MEET_ENDING_SIGNAL_H_

namespace deja::replayer {

class Session;
struct ThreadState;

// Called where the thread asks for a meeting more than it made. Waits for the signal if the
// recorded thread has ended its process by _exit without asking for more. True: a signal came, and
// its handler has returned. False: the recording is of another kind, or no signal comes.
bool AwaitEndingSignal(Session& session, const ThreadState& thread);

}  // namespace deja::replayer

#endif  // DEJA_REPLAYER_MEET_ENDING_SIGNAL_H_
