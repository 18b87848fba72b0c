// ReadSummaries: what the check keeps of each rank of a trace, of its last attempt.
//
// Opens one rank after another. Main thread only.
#ifndef DEJA_CLI_CHECK_READ_SUMMARIES_H_
#define DEJA_CLI_CHECK_READ_SUMMARIES_H_

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "check/evidence/place_finder.h"
#include "check/evidence/summary.h"
#include "check/evidence/trim.h"
#include "common/result.h"
#include "format/reader/rank_reader.h"

namespace deja::cli {

struct TraceSummaries {
  std::vector<check::RankSummary> ranks;
  std::vector<std::string> notes;  // what was left out, and why
  bool is_damaged = false;         // ranks could not be read
};

struct ReadSummariesOptions {
  const char* operation = "checking";  // for progress and errors
  // Calls of a communicator that are kept in any case (check/evidence/trim.h).
  size_t window = check::Trimmer::kWindow;
  // If not 0: of all ranks together. A rank's window is its part of them where that is larger.
  size_t window_of_all = 0;
  // Called for each rank while it is open, in the order of ranks. May be empty.
  std::function<void(const format::RankReader&, const check::RankSummary&)> on_rank = {};
};

// An error if no rank can be read; then stderr has the reasons.
Result<TraceSummaries> ReadSummaries(const std::string& path, check::PlaceFinder& places,
                                     const ReadSummariesOptions& options);

}  // namespace deja::cli

#endif  // DEJA_CLI_CHECK_READ_SUMMARIES_H_
