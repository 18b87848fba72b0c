// ReadSummaries: what the check keeps of each rank of a trace, of one attempt.
//
// Ranks are read on all processors, and put together in their order; a few are open at a time. A
// summary that lies beside a rank's recording is taken instead (check/evidence/summary_file.h).
// Main thread only.
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
#include "format/trace/trace.h"

namespace deja::cli {

struct TraceSummaries {
  std::vector<check::RankSummary> ranks;
  std::vector<std::string> notes;  // what was left out, and why
  bool is_damaged = false;         // ranks could not be read, or not all of them
  size_t from_kept = 0;            // ranks whose summaries were taken
  uint32_t attempt = 0;            // the one that was read
};

inline constexpr int kLastAttempt = -1;

struct ReadSummariesOptions {
  const char* operation = "checking";  // for progress and errors
  int attempt = kLastAttempt;
  // Calls of a communicator that are kept in any case (check/evidence/trim.h).
  size_t window = check::Trimmer::kWindow;
  // If not 0: of all ranks together. A rank's window is its part of them where that is larger.
  size_t window_of_all = 0;
  // If not 0: the calls of all ranks together, in a communicator, that keep their own times. A rank
  // keeps its part of them, from kLeastOwn to kMostOwn. 0: no calls of the window lose them.
  size_t own_of_all = 0;
  static constexpr size_t kLeastOwn = 256;
  static constexpr size_t kMostOwn = 4096;
  // Communicators and ends of ranks alone (check/evidence/summarize.h).
  bool only_heads = false;
  // Take summaries where recordings have them. Not with `on_rank`, which needs what they lack.
  bool use_kept = false;
  // Called for each rank while it is open, in the order of ranks. May be empty.
  std::function<void(const format::RankReader&, const check::RankSummary&)> on_rank = {};
};

// `places` is used by several threads. An error if no rank can be read; then stderr has the
// reasons.
Result<TraceSummaries> ReadSummaries(const std::string& path, check::PlaceFinder& places,
                                     const ReadSummariesOptions& options);

// The number of the last attempt of any rank.
uint32_t LastAttempt(const format::Trace& trace);
// The ranks of an attempt. Ranks that have no part in the last one are left out and noted. Their
// earlier calls do not belong to the last calls of the others.
std::vector<format::RankFolder> FoldersOfAttempt(const format::Trace& trace, uint32_t attempt,
                                                 std::vector<std::string>& notes);

}  // namespace deja::cli

#endif  // DEJA_CLI_CHECK_READ_SUMMARIES_H_
