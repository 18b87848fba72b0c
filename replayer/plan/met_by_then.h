// MetByThen: how far the other threads of a process were when one of them heard of something.
//
// A thread may hear sooner in a replay than it did: that a process has ended, or that something can
// be read. What others had done by then would come after it. Threads come one after the other in
// the file, so times of events say it.
//
// Belongs to the builder of a plan, which it hands its findings to. One thread.
#ifndef DEJA_REPLAYER_PLAN_MET_BY_THEN_H_
#define DEJA_REPLAYER_PLAN_MET_BY_THEN_H_

#include <cstdint>
#include <map>
#include <unordered_map>
#include <vector>

#include "replayer/plan/replay_plan.h"

namespace deja::replayer {

class MetByThen {
 public:
  // Each thread's in its order. `thread`: position in the plan's threads.
  void AddMeeting(uint32_t thread, const RecordedInput& input, uint32_t index, uint64_t time_ns);
  void AddEnd(uint32_t thread, uint32_t pid, uint64_t time_ns);

  // Ends that threads beside the first heard of; polls during which, or since the one before,
  // another thread has written to a pipe of several writers.
  void Finish(std::vector<RecordedThread>& threads,
              std::unordered_map<uint32_t, MeetingsByThread>& at_polls) const;

 private:
  struct Poll {
    uint32_t input;
    uint64_t time_ns;
  };
  struct End {
    uint32_t thread;
    uint32_t pid;
    uint64_t time_ns;
  };
  struct Write {
    uint64_t time_ns;
    uint64_t number;  // of the thread's meeting, from 1
  };
  struct Thread {
    std::vector<uint64_t> meetings;  // times
    std::vector<Write> writes;
    std::vector<Poll> polls;
  };

  [[nodiscard]] MeetingsByThread MetBy(const End& end) const;
  [[nodiscard]] MeetingsByThread WrittenBetween(uint32_t thread, uint64_t from_ns,
                                                uint64_t to_ns) const;

  std::map<uint32_t, Thread> threads_;
  std::vector<End> ends_;
};

}  // namespace deja::replayer

#endif  // DEJA_REPLAYER_PLAN_MET_BY_THEN_H_
