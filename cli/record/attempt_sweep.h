// AttemptSweep: what earlier attempts of restarted ranks keep is bounded.
//
// A restarted rank shares the disk budget with what its earlier attempts have left, which would
// take all of it. So all earlier attempts together have half of what there is for ranks
// (DiskLedger). Beyond that their oldest payloads go, those of all ranks alike, since ranks rely on
// what others keep in the same segment. The window of the last attempt goes last.
//
// Owner: WindowSweep. One thread.
#ifndef DEJA_CLI_RECORD_ATTEMPT_SWEEP_H_
#define DEJA_CLI_RECORD_ATTEMPT_SWEEP_H_

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "format/window/disk_ledger.h"
#include "format/wire/messages.h"

namespace deja::cli {

class AttemptSweep {
 public:
  explicit AttemptSweep(std::string directory) : directory_(std::move(directory)) {}

  // Handles attempts that a later one has followed: completes the folders whose processes are gone,
  // counts what they have, and drops what is too much.
  void Pass(format::DiskLedger& ledger);

 private:
  struct Attempt {
    uint32_t number = 0;
    uint64_t bytes = 0;
    std::vector<format::Segment> segments;  // none as long as its folder is not complete
  };
  void Look();
  void Drop(uint64_t excess, format::DiskLedger& ledger);

  const std::string directory_;
  // By folder, those of this machine that are not the last of their rank.
  std::map<std::string, Attempt> attempts_;
  uint64_t last_bytes_ = 0;  // of the last attempts that have ended
};

}  // namespace deja::cli

#endif  // DEJA_CLI_RECORD_ATTEMPT_SWEEP_H_
