// What `deja record` says when the job has ended: what there is, how each rank ended, what is
// missing, and what to do next.
//
// Lines on stderr; main thread only.
#ifndef DEJA_CLI_RECORD_RECORD_SUMMARY_H_
#define DEJA_CLI_RECORD_RECORD_SUMMARY_H_

#include <string>
#include <vector>

#include "cli/record/trace_sweep.h"

namespace deja::cli {

struct Recorded {
  std::string trace;  // its directory
  std::vector<std::string> program;
  bool single = false;         // the command itself, whether it made a communicator or not
  bool replays_alone = false;  // the trace has what a replay of one rank needs
};

void SayWhatWasRecorded(const Recorded& recorded, const std::vector<SweptRank>& ranks,
                        const SweptChildren& children);

// Relative if it is below the working directory: what a user would type.
std::string ShownPath(const std::string& path);

}  // namespace deja::cli

#endif  // DEJA_CLI_RECORD_RECORD_SUMMARY_H_
