// ReplayVerdict: what a replay proved, from its report and how its process ended.
//
// Values; main thread only. The report is written by the replay library inside the program
// (replayer/report/report.h); the program may damage it. Damaged lines are left out and described.
#ifndef DEJA_CLI_REPLAY_WATCH_REPLAY_VERDICT_H_
#define DEJA_CLI_REPLAY_WATCH_REPLAY_VERDICT_H_

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/events/rank_summary.h"
#include "cli/events/symbolizer.h"
#include "cli/replay/watch/divergence_lines.h"
#include "cli/summaries/program_parts.h"
#include "format/reader/rank_reader.h"

namespace deja::cli {

enum class Outcome { kSame, kDiverged, kFailed };

struct ReplayVerdict {
  uint32_t rank = 0;
  Outcome outcome = Outcome::kFailed;
  bool data_lost = false;            // the recording is not complete
  std::string summary;               // "SIGSEGV at sampler.cc:81, the same as recorded; 413 …"
  std::vector<std::string> details;  // lines below it: stacks, who never came
  nlohmann::json json;
};

// What other ranks' recordings say, for operations that were never left. Sorted by rank.
struct PeerSummary {
  uint32_t rank = 0;
  RankSummary summary;
};

// `wait_status`: as waitpid gives it.
ReplayVerdict JudgeReplay(const format::RankReader& reader, const RankSummary& summary,
                          const std::vector<PeerSummary>& peers, const std::string& scratch,
                          int wait_status, Symbolizer& symbolizer, StackDetail detail);

// The same of the child `name` of a rank, with the child's own reader. How it ended the report
// says.
ReplayVerdict JudgeChild(uint32_t rank, const std::string& name, const format::RankReader& reader,
                         const std::string& scratch, Symbolizer& symbolizer, StackDetail detail);

// There was no device memory for the rank, as `shortage` says: a rank that did not reach its
// recorded end failed for that reason.
void AddShortage(const std::string& shortage, ReplayVerdict& verdict);

// The replay was ended because nothing in it could move any more, as the lines say; none: it was
// not.
void AddStandstill(const std::vector<std::string>& waits, ReplayVerdict& verdict);

// The rank used CUDA, and this machine's driver has no device for it, as `found` says. That may be
// why a rank did not reach its recorded end.
void AddMissingDevice(const std::string& found, ReplayVerdict& verdict);

// Parts of the program that are not as recorded, for a rank that did not do the same. The first of
// them goes before where it diverged. `trace`: as the user named it.
void AddChanges(const std::vector<Change>& changes, const std::string& trace,
                ReplayVerdict& verdict);

// Part of the recording could not be read, as `damage` says; empty: all could.
void AddDamage(const std::string& damage, ReplayVerdict& verdict);

// The report in `scratch` says that the replay was stopped before the program's end.
bool HasStopped(const std::string& scratch);

}  // namespace deja::cli

#endif  // DEJA_CLI_REPLAY_WATCH_REPLAY_VERDICT_H_
