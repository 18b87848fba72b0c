// Ranks for tests of top: what they do is said call by call, and becomes events. One communicator
// of all of them. Times are milliseconds.
#ifndef DEJA_TESTS_UNIT_CLI_TOP_PLAYED_RANKS_H_
#define DEJA_TESTS_UNIT_CLI_TOP_PLAYED_RANKS_H_

#include <cstdint>
#include <vector>

#include "api/nccl_table.h"
#include "cli/top/live_rank.h"
#include "format/wire/message_codec.h"

namespace deja::cli {

class PlayedRanks {
 public:
  static constexpr uint64_t kMs = 1'000'000;
  // Ranks whose events lie at this time and later, so that rates have whole seconds.
  static constexpr uint64_t kBeginMs = 1'000'000;

  explicit PlayedRanks(uint32_t count) : seqs_(count) {
    for (uint32_t rank = 0; rank < count; ++rank) {
      format::TraceHeader header;
      header.world_size = count;
      header.process.hostname = "host";
      header.process.pid = 100 + rank;
      header.start_wall_ns = header.start_mono_ns = kBeginMs * kMs;
      ranks.emplace_back(rank, header);
      ranks.back().is_running = true;
      format::CommCreated created;
      created.comm = 1;
      created.hash = 7;
      created.rank = rank;
      created.nranks = count;
      Take(rank, 0, created);
    }
  }

  // Returns the number of the event, for Leave.
  uint64_t Enter(uint32_t rank, uint64_t ms, uint64_t seq, uint64_t count = 256) {
    format::CallEnter enter;
    enter.api = static_cast<uint32_t>(api::NcclApi::ncclAllReduce);
    enter.comm = 1;
    enter.comm_seq = seq;
    constexpr uint64_t kFloat32 = 7;
    for (const uint64_t argument : {uint64_t{0}, uint64_t{0}, count, kFloat32, uint64_t{0}})
      enter.args.push_back(argument);
    return Take(rank, ms, enter);
  }
  void Leave(uint32_t rank, uint64_t ms, uint64_t entered) {
    format::CallLeave leave;
    leave.enter_seq = entered;
    Take(rank, ms, leave);
  }
  // All enter at `ms`, but for `late`, which comes `by_ms` later; all leave then.
  void AllReduce(uint64_t ms, uint64_t seq, uint32_t late, uint64_t by_ms) {
    std::vector<uint64_t> entered;
    for (uint32_t rank = 0; rank < ranks.size(); ++rank)
      entered.push_back(Enter(rank, rank == late ? ms + by_ms : ms, seq));
    for (uint32_t rank = 0; rank < ranks.size(); ++rank) Leave(rank, ms + by_ms + 1, entered[rank]);
  }
  void Step(uint32_t rank, uint64_t ms, uint64_t step) { Take(rank, ms, format::Step{step}); }

  template <typename Body>
  uint64_t Take(uint32_t rank, uint64_t ms, const Body& body) {
    const uint64_t seq = seqs_[rank]++;
    const std::string encoded = format::EncodeEventToString({0, seq, (kBeginMs + ms) * kMs}, body);
    format::Event event;
    if (format::DecodeEvent(format::AsBytes(encoded), event)) ranks[rank].Take(event);
    return seq;
  }
  static uint64_t Now(uint64_t ms) { return (kBeginMs + ms) * kMs; }

  std::vector<LiveRank> ranks;

 private:
  std::vector<uint64_t> seqs_;
};

}  // namespace deja::cli

#endif  // DEJA_TESTS_UNIT_CLI_TOP_PLAYED_RANKS_H_
