// Culprit: the rank of a failed job that one would look at first.
//
// Pure functions over the recordings of the ranks; values; main thread only.
#ifndef DEJA_CLI_SUMMARIES_CULPRIT_H_
#define DEJA_CLI_SUMMARIES_CULPRIT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/events/rank_summary.h"
#include "format/reader/rank_reader.h"

namespace deja::cli {

// The last attempt of a rank. Both are borrowed.
struct SuspectRank {
  uint32_t rank = 0;
  const format::RankReader* reader = nullptr;
  const RankSummary* summary = nullptr;
};

struct Culprit {
  uint32_t rank = 0;
  std::string why;             // "it crashed first", for the user
  bool has_exception = false;  // one of Python's has ended it
};

// Nothing: all ranks ended well. The order:
// 1. the first rank that a signal of its own making ended
// 2. the first that passed a NaN to a collective before any other did
// 3. the one that never reached a collective in which others wait
// 4. the first that ended badly
std::optional<Culprit> FindCulprit(const std::vector<SuspectRank>& ranks, Symbolizer& symbolizer);

}  // namespace deja::cli

#endif  // DEJA_CLI_SUMMARIES_CULPRIT_H_
