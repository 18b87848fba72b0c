// Where the ranks of a communicator stood when the recording ended: who entered the last operation,
// who left it, and who never came. What one asks first about a job that hangs or whose ranks went
// different ways.
//
// Pure functions over the stories of the ranks; values.
#ifndef DEJA_CLI_SUMMARIES_JOB_SUMMARY_H_
#define DEJA_CLI_SUMMARIES_JOB_SUMMARY_H_

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/events/rank_summary.h"

namespace deja::cli {

struct RankOfJob {
  uint32_t rank = 0;
  const RankSummary* summary = nullptr;
};

// One rank's place on a communicator.
struct Standing {
  uint32_t rank = 0;
  uint64_t last_seq = 0;  // of the last operation that it entered
  bool inside = false;    // and it never left it
  std::string last_call;  // "AllReduce"
  std::string place;      // "metrics.cc:20"; empty if unknown
};

struct CommStanding {
  uint64_t hash = 0;
  uint32_t comm = 0;      // its number on the first of the ranks
  uint64_t last_seq = 0;  // of the furthest rank
  std::string last_call;
  std::vector<Standing> ranks;  // by rank

  // "comm 0: ranks 0 and 3 entered AllReduce #412 and never left; rank 2 never entered it: its last
  // was AllReduce #411 at metrics.cc:20"
  [[nodiscard]] std::string Describe() const;
};

// The communicators whose ranks did not all reach the same end: a rank is inside an operation, or
// some went further than others.
std::vector<CommStanding> UnevenComms(const std::vector<RankOfJob>& ranks, Symbolizer& symbolizer);

nlohmann::json ToJson(const CommStanding& comm);

}  // namespace deja::cli

#endif  // DEJA_CLI_SUMMARIES_JOB_SUMMARY_H_
