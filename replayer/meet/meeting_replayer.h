// MeetingReplayer and LockReplayer: the processes of a rank meet, and its threads take locks, in
// the recorded order.
//
// One of each per process, made with the engine, never destroyed. Any thread, without the guard:
// the calls may block, and be left by cancellation.
#ifndef DEJA_REPLAYER_MEET_MEETING_REPLAYER_H_
#define DEJA_REPLAYER_MEET_MEETING_REPLAYER_H_

#include "api/libc_table.h"
#include "preload/calls/lock_calls.h"
#include "preload/calls/meeting_calls.h"
#include "preload/meet/pipe_table.h"
#include "replayer/core/replayer.h"
#include "replayer/meet/lock_order.h"

namespace deja::replayer {

class MeetingReplayer : public preload::MeetingCalls {
 public:
  explicit MeetingReplayer(Replayer& replayer) : replayer_(replayer) {}

  // Follows the ends of the rank's own pipes that the process was born with.
  void Open();
  // The process has a session.
  void Begin();

  void OnAcquire(preload::AcquireCall& call) override;
  void OnPoll(preload::PollCall& call) override;
  void OnCount(preload::CountCall& call) override;
  void OnPipeRead(preload::OwnPipe& pipe, preload::Transfer& transfer) override;
  void OnPipeWrite(preload::OwnPipe& pipe, preload::Transfer& transfer) override;
  preload::PipeTable* Pipes() override { return pipes_; }
  void OnCollection(const preload::Collection& collection) override;
  void OnCollectionLooks() override;
  bool KeepsCollections(preload::Collector collector) override;

 private:
  void AdoptPipes();

  // The calling thread, which is about to meet another process.
  ThreadState& ThreadAtMeeting();
  // The same where it is about to read a pipe (kpipe) or to write to it (ksocketpair), which may be
  // no meeting. `slot` may be null.
  ThreadState& ThreadAtPipe(const preload::PipeSlot* slot, api::LibcApi api);

  Replayer& replayer_;
  preload::PipeTable* pipes_ = nullptr;
};

class LockReplayer : public preload::LockCalls {
 public:
  explicit LockReplayer(Replayer& replayer) : replayer_(replayer) {}

  // The process has a session / is a forked child, which has none yet.
  void Begin();
  void Abandon();
  // The calling thread ends.
  void EndThread();
  // As LockOrder's.
  void Renumber(int (*new_number)(int tid));

  bool OrdersLoops() override;
  void OnLock(preload::LockCall& call) override;
  void OnOnceBegins(preload::LockCall& call) override;

 private:
  Replayer& replayer_;
  LockOrder* locks_ = nullptr;  // null: no order was recorded
};

}  // namespace deja::replayer

#endif  // DEJA_REPLAYER_MEET_MEETING_REPLAYER_H_
