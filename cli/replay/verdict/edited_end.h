// What became of a recorded failure in a replay of an edited program (`deja replay --edited`).
//
// The edited program gets what was recorded, whatever it sends. So its end says whether the edit
// mends the failure, for these inputs. Values; any thread; pure, but for the symbolizer.
#ifndef DEJA_CLI_REPLAY_VERDICT_EDITED_END_H_
#define DEJA_CLI_REPLAY_VERDICT_EDITED_END_H_

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/events/rank_summary.h"
#include "cli/events/symbolizer.h"
#include "cli/replay/report/replay_report.h"
#include "cli/replay/verdict/divergence_lines.h"

namespace deja::cli {

enum class RecordedFailure : uint8_t {
  kNone,     // neither the recorded run nor the replay failed
  kGone,     // it does not come
  kAgain,    // it comes
  kOther,    // the replay fails in another way
  kUnknown,  // the replay did not get there
};

struct EditedEnd {
  RecordedFailure failure = RecordedFailure::kUnknown;
  std::string live;  // the replay's end: "exit 1, ValueError: text at train.py:35"
};

// `lines`: of the rank itself, not of its children. `wait_status`: as waitpid gives it.
EditedEnd EndOfEdited(const RankSummary& recorded, const std::vector<ReportLine>& lines,
                      int wait_status);

// `recorded_end`: RankSummary::HowItEnded. One sentence.
std::string DescribeEdited(const EditedEnd& end, const std::string& recorded_end);

// For --json.
const char* FailureName(RecordedFailure failure);

// The first operation that the edited program gives other bytes or arguments, or that the recording
// does not have here. Null: there is none.
const DivergenceLine* FirstEffect(const std::vector<ReportLine>& lines);

// Where the edit shows first in what the rank gives to others.
struct Effect {
  std::vector<std::string> text;  // for a person
  nlohmann::json json;            // "takes_effect", "operations_different"
};
Effect EffectOfEdit(const std::vector<ReportLine>& lines, Symbolizer& symbolizer,
                    StackDetail detail);

}  // namespace deja::cli

#endif  // DEJA_CLI_REPLAY_VERDICT_EDITED_END_H_
