// Completing what the processes of a job have left, once they are gone.
//
// For `deja record` when its job has ended. Main thread.
#ifndef DEJA_CLI_RECORD_TRACE_SWEEP_H_
#define DEJA_CLI_RECORD_TRACE_SWEEP_H_

#include <cstdint>
#include <string>
#include <vector>

#include "cli/record/launcher.h"
#include "format/wire/messages.h"

namespace deja::cli {

// This machine's name, as headers have it.
std::string OwnHostname();

struct SweptRank {
  uint32_t rank = 0;
  uint32_t attempt = 0;
  uint32_t world_size = 0;
  uint32_t pid = 0;
  std::string folder;
  uint64_t bytes = 0;
  uint64_t events = 0;
  uint64_t events_lost = 0;
  uint64_t payloads_lost = 0;
  bool still_running = false;
  format::ProcessFate fate;  // known if this `deja record` saw the end of the process
  std::string error;         // why it could not be completed; empty if it was
};

// `everything`: also ranks whose process was not among `ends` (it has to be gone, and of this
// machine); false where others record the same job and sweep their own.
std::vector<SweptRank> SweepTrace(const std::string& directory, const std::vector<ProcessEnd>& ends,
                                  bool everything);

struct SweptChildren {
  std::vector<std::string> kept;          // folders
  std::vector<std::string> before_forks;  // of what ranks were before they were forked
  uint64_t events_lost = 0;
  uint64_t payloads_lost = 0;
  uint64_t still_running = 0;
  std::vector<std::string> errors;
};

// While the job runs: completes the folders of children that have ended, so that what they have
// left in shared memory does not pile up.
void SweepEndedChildren(const std::string& directory);

// False while the process of a rank's or child's folder writes to it. The process must be of this
// machine.
bool HasEnded(const std::string& folder);

// Handles children's folders when the job is over and its ranks have been swept. Completes the
// folders of the ranks' children, with what their parents saw of their ends. Removes the folders of
// processes that belong to no rank.
SweptChildren SweepChildren(const std::string& directory, const std::vector<ProcessEnd>& ends);

// For `deja record --single`. A process that was a rank from its start may replace itself by exec:
// its last image stays, under the number of the first.
void KeepLastImages(const std::string& directory);

}  // namespace deja::cli

#endif  // DEJA_CLI_RECORD_TRACE_SWEEP_H_
