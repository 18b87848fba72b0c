// KeepSummaries: leaves beside recordings of ranks what `deja check` needs of them.
//
// Main thread only.
#ifndef DEJA_CLI_CHECK_KEEP_SUMMARIES_H_
#define DEJA_CLI_CHECK_KEEP_SUMMARIES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "check/evidence/place_finder.h"
#include "common/result.h"

namespace deja::cli {

struct KeptSummaries {
  std::vector<uint32_t> ranks;
  uint64_t bytes = 0;         // of the summaries
  uint64_t events_bytes = 0;  // of what they are made from
  bool is_partial = false;    // events of some ranks are missing
};

// `path`: the folder of a rank, or a trace, of which the last attempt counts. `ranks`: of a trace;
// empty: all. Stops at the first rank that cannot be summarized.
Result<KeptSummaries> KeepSummaries(const std::string& path, const std::vector<uint32_t>& ranks,
                                    check::PlaceFinder& places);

}  // namespace deja::cli

#endif  // DEJA_CLI_CHECK_KEEP_SUMMARIES_H_
