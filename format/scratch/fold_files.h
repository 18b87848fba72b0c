// Lists in the folder where folded ranks meet: `deja replay` writes them, the replay library reads
// them (replayer/fold/fold.h). One entry a line, fields between spaces, hashes as 16 hex digits.
//
// Values; any thread. Errors: those of the system, and kCorrupt with the file and the line.
#ifndef DEJA_FORMAT_SCRATCH_FOLD_FILES_H_
#define DEJA_FORMAT_SCRATCH_FOLD_FILES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "common/result.h"

namespace deja::format {

// A communicator whose ranks are all replayed.
struct FoldComm {
  uint64_t hash = 0;  // in the rank's recording
  uint32_t nranks = 0;
  uint64_t meets = 0;  // the hash by which all of its ranks know it
  bool operator==(const FoldComm&) const = default;
};

// An operation that some rank has no result of, since it ended before, though others have theirs.
struct FoldResult {
  uint64_t meets = 0;
  uint32_t nranks = 0;
  uint64_t seq = 0;  // number of the operation on the communicator
  bool operator==(const FoldResult&) const = default;
};

// `folder`: the meeting folder.
Status WriteFoldComms(const std::string& folder, const std::vector<FoldComm>& comms);
Result<std::vector<FoldComm>> ReadFoldComms(const std::string& folder);
Status WriteFoldResults(const std::string& folder, const std::vector<FoldResult>& results);
Result<std::vector<FoldResult>> ReadFoldResults(const std::string& folder);

}  // namespace deja::format

#endif  // DEJA_FORMAT_SCRATCH_FOLD_FILES_H_
