// MetByThen: how far the other threads of a process were when one of them heard of something.
//
// A thread may hear sooner in a replay than it did: that a process has ended, or that something can
// be read. What others had done by then would come after it. Threads come one after the other in
// the file, so times of events say it. They alone are kept: what a question asks for is found when
// it is asked.
//
// Part of a plan: filled as that is built, then constant. Any thread may ask.
#ifndef DEJA_REPLAYER_PLAN_MET_BY_THEN_H_
#define DEJA_REPLAYER_PLAN_MET_BY_THEN_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

namespace deja::replayer {

// Meetings that other threads of the process had made at a moment; those that had made none are
// left out. Threads are positions in the plan's.
using MeetingsByThread = std::vector<std::pair<uint32_t, uint64_t>>;

class MetByThen {
 public:
  enum class Meeting : uint8_t {
    kOther,
    kFound,  // a poll that found something
    kWrite,  // to a pipe of several writers
  };
  // Each thread's in its order. `input`: position in the plan's inputs.
  void AddMeeting(uint32_t thread, Meeting meeting, uint32_t input, uint64_t time_ns);
  // A wait of the thread for process `pid` found its end.
  void AddEnd(uint32_t thread, uint32_t pid, uint64_t time_ns);

  // All meetings by then of threads other than `thread`.
  [[nodiscard]] MeetingsByThread At(uint32_t thread, uint64_t time_ns) const;
  // When the thread's meeting `number`, from 0, was made; nothing: it made fewer.
  [[nodiscard]] std::optional<uint64_t> TimeOf(uint32_t thread, uint64_t number) const;
  // All meetings by the thread's wait that found the `number`-th end, from 0, of a process `pid`.
  // Nothing where it found no such end.
  [[nodiscard]] MeetingsByThread AtEnd(uint32_t thread, uint32_t pid, size_t number) const;
  // Those of threads that have written since the thread's last poll that found something. Nothing
  // where `input` is no such poll.
  [[nodiscard]] MeetingsByThread AtPoll(uint32_t thread, uint32_t input) const;

 private:
  struct Poll {
    uint32_t input;
    uint64_t time_ns;
  };
  struct Write {
    uint64_t time_ns;
    uint64_t number;  // of the thread's meeting, from 1
  };
  struct Thread {
    std::vector<uint64_t> meetings;  // times
    std::vector<Poll> polls;
    std::map<uint32_t, std::vector<uint64_t>> ends;  // times, by pid
  };

  std::map<uint32_t, Thread> threads_;
  std::map<uint32_t, std::vector<Write>> writes_;  // by thread, of those that have written
};

}  // namespace deja::replayer

#endif  // DEJA_REPLAYER_PLAN_MET_BY_THEN_H_
