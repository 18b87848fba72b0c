#include "cli/replay/verdict/edited_end.h"

#include <fmt/format.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "cli/output.h"

namespace deja::cli {
namespace {

// Two texts of one kind of failure differ in numbers alone: the step, an address.
std::string WithoutNumbers(std::string_view text) {
  std::string kept;
  for (const char c : text)
    if (c < '0' || c > '9') kept += c;
  return kept;
}

// "ValueError: text" of "ValueError: text at train.py:35 in main".
std::string_view WithoutPlace(std::string_view exception) {
  return exception.substr(0, std::min(exception.rfind(" at "), exception.size()));
}

bool IsSameException(std::string_view recorded, std::string_view live) {
  return WithoutNumbers(WithoutPlace(recorded)) == WithoutNumbers(WithoutPlace(live));
}

// Its last exception; empty: none was noted.
std::string LiveException(const std::vector<ReportLine>& lines) {
  std::string text;
  for (const ReportLine& line : lines)
    if (const auto* exception = line.As<ExceptionLine>()) text = ExceptionText(exception->text);
  return text;
}

bool HasFailed(const RankSummary& recorded) {
  return !recorded.EndedWell() || !recorded.open_calls.empty();
}

// The recorded signal that ended the process; 0: none did.
int RecordedSignal(const RankSummary& recorded) {
  if (recorded.fate.known) return static_cast<int>(recorded.fate.signal);
  return recorded.crash && !recorded.exit ? recorded.crash->signal : 0;
}

int RecordedExit(const RankSummary& recorded) {
  return recorded.exit ? recorded.exit->code & 0xff : recorded.fate.exit_code;
}

EditedEnd AtEndOfRecording(const EndLine& end) {
  const auto entered = std::find_if(end.parked.begin(), end.parked.end(),
                                    [](const ParkedPart& parked) { return parked.entered; });
  if (entered != end.parked.end())
    return {RecordedFailure::kAgain,
            fmt::format("it enters {}, which the recorded run never left", entered->api)};
  if (!end.parked.empty())
    return {RecordedFailure::kGone, fmt::format("it goes on to {}, after the end of the recording",
                                                end.parked.front().api)};
  return {RecordedFailure::kUnknown, end.text};
}

// The first call that the recording does not have any more; null: there is none. Nothing was served
// to the program from there on, so its end is no result.
const DivergenceLine* CallPastTheEnd(const RankSummary& recorded,
                                     const std::vector<ReportLine>& lines) {
  for (const ReportLine& line : lines) {
    const auto* divergence = line.As<DivergenceLine>();
    if (divergence == nullptr || divergence->divergence != "extra-call") continue;
    if (!recorded.crash || recorded.crash->thread == divergence->thread) return divergence;
  }
  return nullptr;
}

EditedEnd PastTheEnd(const RankSummary& recorded, const DivergenceLine& call) {
  std::string name = call.api;
  if (call.comm && call.comm_seq.value_or(0) != 0)
    name += fmt::format(" #{} of comm {}", *call.comm_seq, *call.comm);
  if (HasFailed(recorded))
    return {RecordedFailure::kGone,
            fmt::format("it goes on to {}, after the end of the recording", name)};
  return {RecordedFailure::kUnknown,
          fmt::format("it makes {}, which the recording does not have", name)};
}

EditedEnd AfterSignal(const RankSummary& recorded, int signal) {
  const bool same = RecordedSignal(recorded) == signal;
  return {same ? RecordedFailure::kAgain : RecordedFailure::kOther, SignalName(signal)};
}

EditedEnd AfterExit(const RankSummary& recorded, int code, const std::string& exception) {
  EditedEnd end;
  end.live = fmt::format("exit {}{}{}", code, exception.empty() ? "" : ", ", exception);
  const bool same = RecordedSignal(recorded) == 0 && RecordedExit(recorded) == code &&
                    IsSameException(recorded.exception, exception);
  if (code == 0)
    end.failure = HasFailed(recorded) ? RecordedFailure::kGone : RecordedFailure::kNone;
  else
    end.failure = same && HasFailed(recorded) ? RecordedFailure::kAgain : RecordedFailure::kOther;
  return end;
}

}  // namespace

EditedEnd EndOfEdited(const RankSummary& recorded, const std::vector<ReportLine>& lines,
                      int wait_status) {
  if (const auto* failed = FindLine<FailedLine>(lines))
    return {RecordedFailure::kUnknown, failed->message};
  if (const auto* stopped = FindLine<StoppedLine>(lines))
    return {RecordedFailure::kUnknown, stopped->message};
  if (const auto* until = FindLine<UntilLine>(lines))
    return {RecordedFailure::kUnknown, "it ended where it was asked to: " + until->text};
  if (const auto* call = CallPastTheEnd(recorded, lines)) return PastTheEnd(recorded, *call);
  if (const auto* end = FindLine<EndLine>(lines)) return AtEndOfRecording(*end);
  if (FindLine<StartLine>(lines) == nullptr)
    return {RecordedFailure::kUnknown, "Deja's library was not loaded into the program"};
  if (WIFSIGNALED(wait_status)) return AfterSignal(recorded, WTERMSIG(wait_status));
  return AfterExit(recorded, WEXITSTATUS(wait_status), LiveException(lines));
}

std::string DescribeEdited(const EditedEnd& end, const std::string& recorded_end) {
  switch (end.failure) {
    case RecordedFailure::kNone:
      return fmt::format("no failure, as recorded: {}", end.live);
    case RecordedFailure::kGone:
      return fmt::format("the recorded failure ({}) does not come: {}", recorded_end, end.live);
    case RecordedFailure::kAgain:
      return fmt::format("the recorded failure ({}) comes again: {}", recorded_end, end.live);
    case RecordedFailure::kOther:
      return fmt::format("another end than the recorded one ({}): {}", recorded_end, end.live);
    case RecordedFailure::kUnknown:
      break;
  }
  return fmt::format("whether the recorded end ({}) comes is not known: {}", recorded_end,
                     end.live);
}

const char* FailureName(RecordedFailure failure) {
  static constexpr const char* kNames[] = {"none", "gone", "again", "other", "unknown"};
  return kNames[static_cast<int>(failure)];
}

const DivergenceLine* FirstEffect(const std::vector<ReportLine>& lines) {
  static constexpr std::array<std::string_view, 5> kOfOperations = {"input", "arguments", "call",
                                                                    "extra-call", "result"};
  for (const ReportLine& line : lines) {
    const auto* divergence = line.As<DivergenceLine>();
    if (divergence != nullptr && std::find(kOfOperations.begin(), kOfOperations.end(),
                                           divergence->divergence) != kOfOperations.end())
      return divergence;
  }
  return nullptr;
}

Effect EffectOfEdit(const std::vector<ReportLine>& lines, Symbolizer& symbolizer,
                    StackDetail detail) {
  Effect effect;
  effect.json["takes_effect"] = nullptr;
  const DivergenceLine* first = FirstEffect(lines);
  if (first == nullptr) {
    effect.text.emplace_back("your change takes no effect on what the rank gives to collectives");
  } else {
    effect.text = DivergenceLines(*first, symbolizer, detail);
    effect.text.front() = "your change takes effect here: " + effect.text.front();
  }
  size_t operations = 0;
  const DivergenceLine* input = nullptr;
  for (const ReportLine& line : lines) {
    const auto* divergence = line.As<DivergenceLine>();
    if (divergence == nullptr) continue;
    if (divergence == first) effect.json["takes_effect"] = ToJson(line);
    if (divergence->comm && divergence->divergence != "extra-call") ++operations;
    if (input == nullptr && divergence->divergence == "entropy") input = divergence;
  }
  effect.json["operations_different"] = operations;
  if (operations > 1)
    effect.text.push_back(fmt::format("{} operations differ from there on", operations));
  if (input != nullptr) effect.text.push_back("it asks for more than was recorded: " + input->text);
  return effect;
}

}  // namespace deja::cli
