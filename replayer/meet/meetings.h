// Calls by which processes of the rank meet, in the recorded order.
//
// Each thread makes the acquisitions that it made in the recording, in that order, of a semaphore
// or of a mutex that processes share. Each waits until the earlier ones, by whichever process, have
// been made. Attempts that failed fail again without a look. A wait for a condition variable gives
// the mutex back and takes it when it was taken. A wait for a pipe returns what it returned:
// nothing, at once, or something, as soon as that is there.
//
// The turn of one that will never come (its process has ended) is passed over. Where nothing moves
// for ten seconds a line says which process waits for which. After a minute the order gives way,
// which is a divergence (after ten seconds, where no process has announced that turn). A replay
// from a checkpoint, which begins in the middle, keeps no order.
//
// Any thread, without the guard. Interpreters of Python go on with their other threads meanwhile.
#ifndef DEJA_REPLAYER_MEET_MEETINGS_H_
#define DEJA_REPLAYER_MEET_MEETINGS_H_

#include <string>

#include "preload/calls/meeting_calls.h"
#include "preload/engine/fd_table.h"

namespace deja::replayer {

class Session;
struct ThreadState;

void ServeAcquire(Session& session, ThreadState& thread, preload::AcquireCall& call);
// In a child without a recording: it was killed before it had acquired anything.
void ServeUnrecordedAcquire(const std::string& scratch, preload::AcquireCall& call);
void ServePoll(Session& session, ThreadState& thread, preload::PollCall& call);
void ServeCount(Session& session, ThreadState& thread, preload::CountCall& call);
void ServePipeRead(Session& session, ThreadState& thread, preload::OwnPipe& pipe,
                   preload::Transfer& transfer);
void ServePipeWrite(Session& session, ThreadState& thread, preload::OwnPipe& pipe,
                    preload::Transfer& transfer);

}  // namespace deja::replayer

#endif  // DEJA_REPLAYER_MEET_MEETINGS_H_
