// RankFacts: what a report or an export says of one rank besides its calls: machine, sizes, steps.
//
// Read while the rank's recording is open, and self-contained after that. Values.
#ifndef DEJA_CLI_SUMMARIES_RANK_FACTS_H_
#define DEJA_CLI_SUMMARIES_RANK_FACTS_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "format/reader/rank_reader.h"

namespace deja::cli {

struct RankFacts {
  std::string host;
  uint32_t pid = 0;
  uint32_t level = 0;
  uint64_t events = 0;
  uint64_t payloads = 0;
  uint64_t payload_bytes = 0;
  uint64_t file_bytes = 0;
  uint64_t events_lost = 0;
  uint64_t payloads_lost = 0;
  uint64_t start_ns = 0;                             // wall clock
  std::vector<std::pair<uint64_t, uint64_t>> steps;  // number, wall-clock begin; in their order
};

RankFacts ReadRankFacts(const format::RankReader& reader);
// Without its steps: reads no events.
RankFacts ReadRankHead(const format::RankReader& reader);

// A step of the job: when its first and its last rank began it.
struct JobStep {
  uint64_t step = 0;
  uint64_t first_ns = 0;
  uint64_t last_ns = 0;
  size_t last_rank = 0;  // index
  size_t ranks = 0;
};

// In the order of their first begin. A step that a rank began several times counts once.
std::vector<JobStep> StepsOf(const std::vector<RankFacts>& ranks);

}  // namespace deja::cli

#endif  // DEJA_CLI_SUMMARIES_RANK_FACTS_H_
