// What the replays of a command proved, shown to the user: a verdict for each rank, and the exit
// code.
//
// Main thread only.
#ifndef DEJA_CLI_REPLAY_VERDICT_REPLAY_RESULTS_H_
#define DEJA_CLI_REPLAY_VERDICT_REPLAY_RESULTS_H_

#include <string>
#include <vector>

#include "cli/replay/watch/replay_processes.h"
#include "format/reader/rank_reader.h"
#include "format/trace/trace.h"

namespace deja::cli {

struct ResultOptions {
  bool json = false;
  bool stacks = false;                // native frames of programs of Python, too
  bool edited = false;                // the program is not the recorded one, on purpose
  bool computes = false;              // the ranks depend on each other
  std::vector<std::string> binaries;  // folders with the program's binaries
};

// Said before the replay, since it decides how far that can come.
void SayWhatIsKept(const format::RankReader& reader);

// Prints the verdicts. The exit code that fits all of them.
int ReportResults(format::Trace& trace, const std::vector<Replayed>& replays,
                  const ResultOptions& options);

}  // namespace deja::cli

#endif  // DEJA_CLI_REPLAY_VERDICT_REPLAY_RESULTS_H_
