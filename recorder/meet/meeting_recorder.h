// MeetingRecorder and LockRecorder: write down in which order the processes of a rank meet, and in
// which order its threads take locks.
//
// One of each per process, never destroyed. Any thread. errno is left as the real call left it.
#ifndef DEJA_RECORDER_MEET_MEETING_RECORDER_H_
#define DEJA_RECORDER_MEET_MEETING_RECORDER_H_

#include <atomic>

#include "common/runtime/errno_keeper.h"
#include "preload/calls/lock_calls.h"
#include "preload/calls/meeting_calls.h"
#include "recorder/core/recorder.h"

namespace deja::recorder {

class MeetingRecorder : public preload::MeetingCalls {
 public:
  explicit MeetingRecorder(Recorder& recorder) : recorder_(recorder) {}

  void OnAcquire(preload::AcquireCall& call) override;
  void OnPoll(preload::PollCall& call) override;
  void OnCount(preload::CountCall& call) override;
  void OnPipeRead(preload::OwnPipe& pipe, preload::Transfer& transfer) override;
  void OnPipeWrite(preload::OwnPipe& pipe, preload::Transfer& transfer) override;
  preload::PipeTable* Pipes() override;
  void OnCollection(const preload::Collection& collection) override;
  void OnCollectionLooks() override;

 private:
  void NoteChildSignal();

  Recorder& recorder_;
  std::atomic<preload::PipeTable*> pipes_{nullptr};
  std::atomic<bool> has_no_pipes_{false};
};

class LockRecorder : public preload::LockCalls {
 public:
  explicit LockRecorder(Recorder& recorder) : recorder_(recorder) {}

  void OnThreadsMeet() override;
  bool OrdersLoops() override;
  void OnLock(preload::LockCall& call) override;
  void OnOnceBegins(preload::LockCall& call) override;

 private:
  Recorder& recorder_;
};

}  // namespace deja::recorder

#endif  // DEJA_RECORDER_MEET_MEETING_RECORDER_H_
