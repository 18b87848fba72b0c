// ChildSignals: SIGCHLD reaches the first thread of a program of Python where it did in the
// recording (preload/engine/child_signal.h).
//
// Belongs to the session; constant in size. That thread alone changes it; others are ignored.
#ifndef DEJA_REPLAYER_CORE_CHILD_SIGNALS_H_
#define DEJA_REPLAYER_CORE_CHILD_SIGNALS_H_

#include <cstddef>
#include <cstdint>

#include "replayer/plan/replay_plan.h"

namespace deja::replayer {

class ChildSignals {
 public:
  explicit ChildSignals(const ReplayPlan& plan);

  // The recording says where it comes; the live signal is of no interest.
  [[nodiscard]] bool AreRecorded() const { return are_recorded_; }

  // The live signals count: a replay from a checkpoint makes other events before them.
  void LeaveLive();

  // The calling thread is recorded thread `recorded`. It has made one of its counted events, or is
  // about to read a clock, or has made a file call. The program's handler runs for each signal that
  // had come by then.
  void CountEvent(uint32_t recorded);
  void CountReading(uint32_t recorded);
  void CountFileCall(uint32_t recorded);
  // The last reading was one that the program does not see.
  void TakeReadingBack(uint32_t recorded);
  // The same as it begins or ends to sleep. True: the handler has run.
  bool CountSleep(uint32_t recorded);

  // How many signals the calling thread, recorded thread `recorded`, has not got as the process
  // exits. Those after its last counted event do not count: the exit may come first.
  [[nodiscard]] uint64_t MissedAtExit(uint32_t recorded) const;

  // The program gets a signal that waits for the calling thread's next call: its place is between
  // two of them. It is sent if there is no such call for a while. False: none waits.
  static bool GiveWaiting();

 private:
  [[nodiscard]] bool IsDue(const RecordedSignal& signal) const;
  // `at_sleep`: the calling thread begins or ends one.
  void GiveDue(bool at_sleep = false);

  const RecordedThread* thread_ = nullptr;  // null: none, but in calls that it ended
  uint32_t recorded_ = kNone;
  bool are_recorded_ = false;
  size_t next_ = 0;
  uint64_t events_ = 0;
  uint64_t readings_ = 0;  // since the last of these
};

}  // namespace deja::replayer

#endif  // DEJA_REPLAYER_CORE_CHILD_SIGNALS_H_
