// LiveRank: what a running rank does, as its events come.
//
// Memory does not grow with the recording: of each communicator only the last operations are kept,
// of the rest numbers. Times are wall-clock nanoseconds of the rank's machine. A value; one thread.
#ifndef DEJA_CLI_TOP_LIVE_RANK_H_
#define DEJA_CLI_TOP_LIVE_RANK_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "check/evidence/signature.h"
#include "format/wire/messages.h"

namespace deja::cli {

struct LiveOperation {
  check::Operation operation = check::Operation::kBarrier;
  int64_t peer = -1;  // of a transfer, its rank in the communicator; -1: any
  uint64_t begin_ns = 0;
  uint64_t end_ns = 0;  // 0: under way
  uint64_t bytes = 0;
  bool is_entered = false;  // its call has been seen
  bool is_other = false;    // none that ranks can be compared by
  bool is_torch = false;    // its call returns before it is done
  bool is_grouped = false;  // likewise
};

struct LiveComm {
  // Operations that are kept.
  static constexpr size_t kKept = 256;

  uint64_t hash = 0;
  uint64_t joined_as = 0;  // CommNames
  uint32_t rank = 0;
  uint32_t nranks = 0;
  std::string name;
  std::map<uint64_t, LiveOperation> recent;  // by their number on the communicator
  uint64_t forgotten_collectives = 0;        // in front of them

  // The collectives that are kept, as pairs of their number among collectives, from 1, and the
  // operation. Ends where an operation is missing that another thread has yet to write.
  [[nodiscard]] std::vector<std::pair<uint64_t, const LiveOperation*>> Collectives() const;
};

// What a rank did in a second of its machine's clock.
struct LiveSecond {
  uint64_t second = 0;
  uint64_t operations = 0;
  uint64_t bytes = 0;
  uint64_t steps = 0;
};

class LiveRank {
 public:
  LiveRank() = default;
  LiveRank(uint32_t rank, const format::TraceHeader& header);

  void Take(const format::Event& event);

  uint32_t rank = 0;
  std::string host;
  uint32_t pid = 0;
  uint32_t world_size = 0;
  uint64_t begin_ns = 0;
  uint64_t last_ns = 0;  // of the last event
  std::optional<uint64_t> step;
  uint64_t steps = 0;
  uint64_t operations = 0;             // collectives and transfers
  uint64_t bytes = 0;                  // that the rank gave to them, or got by a receive
  std::map<uint32_t, LiveComm> comms;  // by number
  std::optional<int> exit_code;
  int crashed_by = 0;        // a signal
  bool is_running = false;   // set by the owner
  bool is_finished = false;  // set by the owner: its recording has its end

  // What it did in the last `seconds` before its last event; the span that they are, in seconds.
  LiveSecond Lately(uint64_t seconds, double& span) const;

 private:
  struct Place {
    uint32_t comm = 0;
    uint64_t seq = 0;
  };
  using Key = std::pair<uint32_t, uint64_t>;  // thread and number of the event

  template <typename T>
  void On(const format::Event&, const T&) {}
  void On(const format::Event& event, const format::CallEnter& enter);
  void On(const format::Event& event, const format::CallLeave& leave);
  void On(const format::Event& event, const format::CallResults& results);
  void On(const format::Event& event, const format::CommCreated& created);
  void On(const format::Event& event, const format::Step& step);
  void On(const format::Event& event, const format::Crash& crash);
  void On(const format::Event& event, const format::ProcessExit& exit);

  [[nodiscard]] uint64_t Wall(uint64_t time_ns) const { return time_ns + to_wall_; }
  LiveOperation* Of(uint32_t comm, uint64_t seq);
  void Finish(Place place, uint64_t time_ns);
  LiveSecond& SecondOf(uint64_t time_ns);

  uint64_t to_wall_ = 0;
  std::map<Key, Place> open_;   // calls of operations that were not left
  std::map<Key, Place> works_;  // torch's waits for them
  std::map<Key, uint32_t> group_ends_;
  std::map<uint32_t, std::vector<Place>> grouped_;  // by thread
  std::array<LiveSecond, 16> seconds_ = {};
};

}  // namespace deja::cli

#endif  // DEJA_CLI_TOP_LIVE_RANK_H_
