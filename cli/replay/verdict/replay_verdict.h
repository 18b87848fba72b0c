// ReplayVerdict: what a replay proved, from its report and how its process ended.
//
// Values; main thread only. The report is written by the replay library inside the program
// (replayer/report/report.h); the program may damage it. Damaged lines are left out and described.
#ifndef DEJA_CLI_REPLAY_VERDICT_REPLAY_VERDICT_H_
#define DEJA_CLI_REPLAY_VERDICT_REPLAY_VERDICT_H_

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "cli/events/rank_summary.h"
#include "cli/events/symbolizer.h"
#include "cli/replay/verdict/divergence_lines.h"
#include "cli/replay/verdict/recorded_time.h"
#include "format/reader/rank_reader.h"

namespace deja::cli {

enum class Outcome { kSame, kDiverged, kFailed };

// "same", "diverged", "failed", as --json has it.
const char* OutcomeName(Outcome outcome);

struct ReplayVerdict {
  uint32_t rank = 0;
  Outcome outcome = Outcome::kFailed;
  bool data_lost = false;            // the recording is not complete
  std::string summary;               // "SIGSEGV at sampler.cc:81, the same as recorded; 413 …"
  std::vector<std::string> details;  // lines below it: stacks, who never came
  std::optional<RecordedPlace> diverged_at;  // of the first divergence, if it is the rank's own
  bool is_damages_doing = false;  // that it is not the same may come from a damaged recording
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

// The same of an edited program: where the edit takes effect, and whether the recorded failure
// comes (edited_end.h). The outcome is kSame without a failure and kFailed with one. It is
// kDiverged if that is not known.
ReplayVerdict JudgeEdited(const format::RankReader& reader, const RankSummary& summary,
                          const std::string& scratch, int wait_status, Symbolizer& symbolizer,
                          StackDetail detail);

// The same of the child `name` of a rank, with the child's own reader. How it ended the report
// says.
ReplayVerdict JudgeChild(uint32_t rank, const std::string& name, const format::RankReader& reader,
                         const std::string& scratch, Symbolizer& symbolizer, StackDetail detail);

}  // namespace deja::cli

#endif  // DEJA_CLI_REPLAY_VERDICT_REPLAY_VERDICT_H_
