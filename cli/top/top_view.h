// TopView: what a running job does now: its rates, who waits for whom, who is late.
//
// Pure functions of what the ranks did; values. Times of different machines are compared after the
// difference of their clocks, which the ends of common collectives show.
#ifndef DEJA_CLI_TOP_TOP_VIEW_H_
#define DEJA_CLI_TOP_TOP_VIEW_H_

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "cli/top/live_rank.h"

namespace deja::cli {

struct TopRow {
  uint32_t rank = 0;
  std::string state;  // "running", "exit 0", "SIGSEGV", "gone"
  std::string host;
  uint32_t pid = 0;
  std::optional<uint64_t> step;
  double steps_per_second = 0;
  double operations_per_second = 0;
  double bytes_per_second = 0;
  uint64_t operations = 0;
  uint64_t bytes = 0;
  std::string doing;           // "in AllReduce #412 of comm 0", "after AllReduce #411 of comm 0"
  uint64_t since_ns = 0;       // how long; by the rank's own clock
  double late_share = 0;       // of the last collectives: it entered last, and was waited for
  uint64_t waited_for_ns = 0;  // by the others, for this rank alone, in these
};

// Ranks that are in an operation, and those that have not entered it.
struct TopWait {
  std::vector<uint32_t> waiting;  // ranks of the job
  std::vector<uint32_t> awaited;  // none: all are in it, so it is under way
  std::string operation;          // "AllReduce #412 of comm 0"
  uint64_t since_ns = 0;          // of the one that waits longest

  // "ranks 0-2 wait for rank 3 in AllReduce #412 of comm 0"
  [[nodiscard]] std::string Describe() const;
};

struct TopView {
  std::string trace;
  uint32_t world_size = 0;
  size_t running = 0;
  uint64_t elapsed_ns = 0;
  std::optional<uint64_t> first_step;  // the least step that a rank is in
  std::optional<uint64_t> last_step;   // the greatest
  double steps_per_second = 0;         // of the slowest rank that runs
  double operations_per_second = 0;    // of all ranks
  double bytes_per_second = 0;         // of all ranks
  uint64_t bytes = 0;                  // of all ranks
  std::vector<TopRow> rows;            // by rank
  std::vector<TopWait> waits;          // the longest first
  std::vector<size_t> stragglers;      // of rows; the worst first
  std::vector<std::string> notes;      // what could not be read
};

// `now_ns`: the wall clock of this machine. Ranks ascend.
TopView MakeTopView(const std::string& trace, const std::vector<LiveRank>& ranks, uint64_t now_ns);

nlohmann::json ToJson(const TopView& view);

}  // namespace deja::cli

#endif  // DEJA_CLI_TOP_TOP_VIEW_H_
