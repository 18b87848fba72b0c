// LockOrder: the threads of a replay take locks in the recorded order.
//
// Each thread makes the acquisitions that it made. Before each, it waits until the earlier ones of
// the same counter have been made. So what a lock protects is seen by the same threads in the same
// order. An attempt that failed fails again at once. A wait for a condition variable gives the
// mutex back and takes it when it was taken, whether it is signalled or not. No address of a lock
// is needed.
//
// A turn of a thread that has ended, or gone on without it, is passed over. Where nothing moves for
// ten seconds a line says which thread waits for which. After a minute there is no order any more
// in this process, which is a divergence. A thread that is past what was recorded of it, while its
// process ended, waits for that end as long as anything moves.
//
// In a process with Python a turn may never come, since which thread the interpreter lets run is
// not recorded. Where all threads have waited for one another for two seconds, one goes on without
// its turn, and a line says so. After some of these there is no order any more, which is no
// divergence.
//
// One for each process with a recording, never destroyed. Any thread, without the guard.
#ifndef DEJA_REPLAYER_MEET_LOCK_ORDER_H_
#define DEJA_REPLAYER_MEET_LOCK_ORDER_H_

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "common/runtime/futex.h"
#include "preload/calls/lock_calls.h"
#include "replayer/core/session.h"
#include "replayer/meet/stillness.h"
#include "replayer/plan/lock_stream.h"

namespace deja::replayer {

// How far a thread is in the recorded order; a part of its ThreadState.
struct LockThread {
  static constexpr ThreadPart kPart = ThreadPart::kLocks;

  std::unique_ptr<LockStream::Cursor> cursor;  // from its first lock
  bool is_past = false;                        // it goes on past the recorded ones
  bool runs_in_turn = false;  // a routine that runs once, by the next of these readings
};

inline LockThread& LocksOf(ThreadState& thread) {
  return thread.Of<LockThread>();
}

class LockOrder {
 public:
  // Null: the recording has no order, or the replay, which begins in the middle, keeps none.
  static LockOrder* Make(Session& session);

  void Serve(ThreadState& thread, preload::LockCall& call);
  void BeginOnce(ThreadState& thread, preload::LockCall& call);
  void EndThread(const ThreadState& thread);
  // The process is a copy, in which its threads have other numbers. They wait; no allocation.
  void Renumber(int (*new_number)(int tid));

 private:
  // What a call is to do.
  struct Step {
    enum class Kind : uint8_t { kLive, kTurn, kOutcome, kEnd } kind = Kind::kLive;
    format::LockReading reading;
    int result = 0;  // of a turn: what the call returns if it takes the lock
  };
  // How far a recorded thread has come.
  struct Progress {
    std::atomic<uint64_t> passed{0};  // readings
    std::atomic<bool> ended{false};
    std::atomic<int> tid{0};         // 0: it has taken no lock yet
    std::atomic<bool> waits{false};  // for its turn
  };
  // The thread that makes an acquisition.
  struct Owner {
    uint64_t turn;
    uint64_t reading;  // of the thread, from 0
    uint32_t thread;
  };

  explicit LockOrder(Session& session);
  Step Next(ThreadState& thread, const preload::LockCall& call);
  // Leaves out what the thread does not do.
  bool FindSame(ThreadState& thread, const preload::LockCall& call);
  void Pass(ThreadState& thread);
  void TakeInTurn(ThreadState& thread, preload::LockCall& call, const Step& step);
  void RunOnce(ThreadState& thread, preload::LockCall& call, const Step& step);
  void AwaitRoutine(preload::LockCall& call);
  void AwaitEnd(ThreadState& thread, preload::LockCall& call);

  // Returns when it is the turn, or there is no order any more.
  void AwaitTurn(ThreadState& thread, const format::LockReading& reading);
  void AwaitTurnLong(ThreadState& thread, const format::LockReading& reading);
  [[nodiscard]] static bool IsReady(const preload::LockCall& call,
                                    const format::LockReading& reading);
  // The counter is at `from`: it moves on, and the waiting threads hear of it.
  void Advance(uint16_t counter, uint64_t from, uint64_t to);
  void Wake(uint16_t counter, uint32_t turns);

  // Moves the counter on to a turn that a thread will take. Returns that thread; kNone: the counter
  // has moved.
  uint32_t PassOver(uint16_t counter, uint64_t current);
  const std::vector<Owner>& OwnersOf(uint16_t counter);
  [[nodiscard]] bool HasPassed(const Owner& owner) const;
  // A thread that will take a lock, or any, sleeps for a time of the program's.
  [[nodiscard]] bool OneSleeps(bool any) const;
  // Each thread but the calling one waits for another one.
  [[nodiscard]] bool AllWait() const;
  void Look(ThreadState& thread, const format::LockReading& reading, uint32_t owner,
            Stillness& still);
  // The calling thread goes on without its turn. False: it is to wait.
  bool GiveWay(const format::LockReading& reading, uint32_t owner, const Stillness& still);

  static constexpr size_t kWaiterSlots = 4096;

  Session& session_;
  bool looks_early_ = false;              // the next owner is quickly found out
  std::unique_ptr<Progress[]> progress_;  // by recorded thread
  std::array<std::atomic<uint32_t>, kWaiterSlots> waiters_{};
  std::atomic<bool> gave_up_{false};
  std::atomic<bool> deviates_{false};  // some thread left out what it did, or did more
  std::atomic<uint32_t> gave_way_{0};  // threads, without their turns
  FutexMutex owners_mutex_;
  std::map<uint16_t, std::vector<Owner>> owners_;
};

}  // namespace deja::replayer

#endif  // DEJA_REPLAYER_MEET_LOCK_ORDER_H_
