// MergeParts: traces of single nodes, and whether they are parts of one job.
//
// Each node's `deja record` gives its trace a number of its own, so the number does not tell. The
// ranks of one job have made communicators together, at one time. Main thread.
#ifndef DEJA_CLI_MERGE_MERGE_PARTS_H_
#define DEJA_CLI_MERGE_MERGE_PARTS_H_

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "check/evidence/summary.h"
#include "common/result.h"
#include "format/trace/trace.h"

namespace deja::cli {

struct MergePart {
  std::string path;  // as given
  std::unique_ptr<format::Trace> trace;
  std::vector<std::string> hosts;  // of each of trace->ranks()
  std::string job_id;              // 16 bytes
  uint64_t begin_ns = 0;           // by the clocks of its machines
  uint64_t end_ns = 0;
  std::set<std::pair<uint64_t, uint32_t>> communicators;  // hash and size
  std::vector<check::RankSummary> summaries;              // of each of trace->ranks()
};

struct MergeParts {
  std::vector<MergePart> parts;
  uint32_t world_size = 0;
};

// Opens the traces, and reads all events of all ranks. An error says which two do not belong
// together and why, or which rank is recorded still.
Result<MergeParts> ReadMergeParts(const std::vector<std::string>& paths);

// How far the clock of each rank's machine is ahead of the first trace's first machine, by what the
// ends of common collectives show. As parts and their ranks. 0 where nothing shows it, and for less
// than threads need to wake.
std::vector<std::vector<int64_t>> ClocksAhead(const MergeParts& merged);

}  // namespace deja::cli

#endif  // DEJA_CLI_MERGE_MERGE_PARTS_H_
