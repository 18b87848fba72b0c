// Collections: Python's collector of reference cycles runs on the threads on which it ran, between
// the events between which it ran (docs/decisions/0039-garbage-is-collected-where-it-was.md).
//
// By itself it runs when enough objects have been made, whichever thread makes them. What it
// finalizes may meet other processes.
//
// Part of the session. Any thread.
#ifndef DEJA_REPLAYER_MEET_COLLECTIONS_H_
#define DEJA_REPLAYER_MEET_COLLECTIONS_H_

#include <atomic>
#include <cstdint>
#include <memory>

#include "preload/calls/meeting_calls.h"
#include "replayer/core/session.h"

namespace deja::replayer {

class Collections {
 public:
  static constexpr SessionPart kPart = SessionPart::kCollections;

  explicit Collections(Session& session);

  // MeetingCalls::KeepsCollections. The interpreter's own go on where what they finalized did
  // nothing that was recorded.
  bool Keep(preload::Collector collector);

  // What the calling thread is about to do. Meetings have times in the plan, transfers are counted.
  // kUncounted is a use of a pipe that is neither. It came before the thread's next meeting, with
  // which what is due waits.
  enum class Place : uint8_t { kMeeting, kTransfer, kUncounted };

  // The calling thread is about to meet another process. Runs the collector if it ran before that.
  // Waits for those of other threads that did something before: what is garbage since, was not
  // then. One that only freed memory runs up to one event early, so that it finds no more than it
  // found. Without the guard: the program's finalizers run. errno is kept.
  void GiveDue(ThreadState& thread, Place place);

  // The program itself has the collector run: that is the next one.
  void OnOwn(ThreadState& thread, uint32_t generation);

  // The collector looks for garbage, on the calling thread: others may go on.
  void OnLook(const ThreadState& thread);

  // The calling thread ends: nothing waits for its collections.
  void EndThread(const ThreadState& thread);

 private:
  [[nodiscard]] const RecordedCollection* Next(const ThreadState& thread) const;
  // Those of other threads that did something before `time_ns`.
  [[nodiscard]] bool HaveBegun(ThreadState& thread, uint64_t time_ns) const;
  void AwaitCollections(ThreadState& thread, uint64_t time_ns);
  // The interpreter has one collection at a time; another one would be none.
  void Collect(ThreadState& thread, preload::Collector collector, uint32_t generation);

  Session& session_;
  std::atomic<preload::Collector> collector_{nullptr};
  std::atomic<uint32_t> collecting_{kNone};         // the recorded thread that does
  std::unique_ptr<std::atomic<uint32_t>[]> begun_;  // by recorded thread: how many
};

// Collections::GiveDue of the session's.
void GiveCollections(Session& session, Collections::Place place);

}  // namespace deja::replayer

#endif  // DEJA_REPLAYER_MEET_COLLECTIONS_H_
