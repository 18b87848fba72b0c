#include "cli/replay/verdict/replay_verdict.h"

#include <fmt/format.h>
#include <sys/wait.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "cli/events/comm_names.h"
#include "cli/output.h"
#include "cli/replay/report/replay_report.h"
#include "cli/replay/verdict/edited_end.h"
#include "cli/summaries/child_summary.h"
#include "format/scratch/scratch_names.h"

namespace deja::cli {
namespace {

using nlohmann::json;

std::string FileName(const std::string& path) {
  return std::filesystem::path(path).filename().string();
}

struct Place {
  std::string module;
  uint64_t offset = 0;
};

// Where a crash was: the innermost frame outside of NCCL and Deja, which differ in a replay.
Place CrashPlace(const std::vector<Place>& frames) {
  for (const Place& frame : frames)
    if (!IsDejaModule(frame.module)) return frame;
  return {};
}

std::vector<Place> RecordedFrames(const RankSummary& summary) {
  std::vector<Place> places;
  if (!summary.crash) return places;
  auto stack = summary.stacks.find(summary.crash->stack);
  const auto& frames = summary.crash->frames.empty() && stack != summary.stacks.end()
                           ? stack->second
                           : summary.crash->frames;
  for (const format::StackFrame& frame : frames) {
    auto module = summary.modules.find(frame.module);
    places.push_back({module == summary.modules.end() ? "" : module->second.path, frame.offset});
  }
  return places;
}

std::vector<Place> LiveFrames(const CrashLine& crash) {
  std::vector<Place> places;
  places.reserve(crash.frames.size());
  for (const FramePart& frame : crash.frames) places.push_back({frame.module, frame.offset});
  return places;
}

// Null: the line is not there, or has none.
template <typename Line>
const CountersPart* CountersOf(const Line* line) {
  return line == nullptr || !line->counters ? nullptr : &*line->counters;
}

// Empty: it has got all of them.
std::string MissedSignals(const ExitLine* exit) {
  const uint64_t count = exit == nullptr ? 0 : exit->missed_signals.value_or(0);
  if (count == 0) return "";
  return fmt::format("{} recorded {} not delivered", count, count == 1 ? "SIGCHLD" : "SIGCHLDs");
}

std::string PlaceText(const Place& place, Symbolizer& symbolizer, bool is_pc) {
  if (place.module.empty()) return fmt::format("{:#x}", place.offset);
  return symbolizer.Resolve(place.module, "", place.offset, !is_pc).front().Place();
}

class Judge {
 public:
  // `child`: of the rank, the one that is judged; empty: the rank itself.
  Judge(uint32_t rank, const format::RankReader& reader, const RankSummary& summary,
        const std::vector<PeerSummary>& peers, Symbolizer& symbolizer, StackDetail detail,
        std::string child)
      : rank_(rank),
        reader_(reader),
        summary_(summary),
        peers_(peers),
        symbolizer_(symbolizer),
        detail_(detail),
        child_(std::move(child)) {}

  ReplayVerdict Run(const std::string& scratch, int wait_status) {
    ReadLines(scratch);
    if (!child_.empty()) wait_status = ReportedStatus();
    const auto* failed = FindLine<FailedLine>(lines_);
    const auto* end = FindLine<EndLine>(lines_);
    const auto* until = FindLine<UntilLine>(lines_);
    const auto* crash = FindLine<CrashLine>(lines_);
    const auto* exit = FindLine<ExitLine>(lines_);
    const auto* stopped = FindLine<StoppedLine>(lines_);
    if (failed != nullptr) {
      Fail(failed->message);
    } else if (reader_.totals().events == 0 && reader_.end().tail_events == 0) {
      Fail("the recording holds no event: nothing could be served or compared");
    } else if (stopped != nullptr) {
      counters_ = CountersOf(stopped);
      verdict_.outcome = Outcome::kDiverged;
      verdict_.summary = stopped->message;
    } else if (StoppedAtDivergence(wait_status)) {
      counters_ = CountersOf(FindLine<CountedLine>(lines_));
      verdict_.outcome = Outcome::kDiverged;
      verdict_.summary = "diverged";
    } else if (until != nullptr) {
      counters_ = CountersOf(until);
      verdict_.outcome = Outcome::kSame;
      verdict_.summary = "ended where it was asked to: " + until->text;
      verdict_.json["until"] = until->text;
    } else if (end != nullptr) {
      JudgeEnd(*end);
    } else if (WIFSIGNALED(wait_status)) {
      JudgeSignal(WTERMSIG(wait_status), crash);
    } else if (!child_.empty() && exit == nullptr) {
      JudgeMissingEnd();
    } else if (FindLine<StartLine>(lines_) == nullptr) {
      Fail(
          fmt::format("the program ended with exit code {} before Deja's library was loaded into "
                      "it (is it statically linked, or set-user-id?)",
                      WEXITSTATUS(wait_status)));
    } else {
      JudgeExit(WEXITSTATUS(wait_status), exit);
    }
    AddDivergences();
    AddChildren();
    if (!child_.empty()) AddOthers();
    AddCounters();
    NoteUnseen();
    AddReportDamage(scratch + format::kReportFile, report_damage_);
    NoteLoss();
    return std::move(verdict_);
  }

  ReplayVerdict RunEdited(const std::string& scratch, int wait_status) {
    ReadLines(scratch);
    const EditedEnd end = EndOfEdited(summary_, lines_, wait_status);
    const bool works =
        end.failure == RecordedFailure::kGone || end.failure == RecordedFailure::kNone;
    verdict_.outcome = works                                      ? Outcome::kSame
                       : end.failure == RecordedFailure::kUnknown ? Outcome::kDiverged
                                                                  : Outcome::kFailed;
    verdict_.summary = DescribeEdited(end, summary_.HowItEnded(symbolizer_));
    verdict_.json["edited"] = {{"failure", FailureName(end.failure)}, {"live_end", end.live}};
    Effect effect = EffectOfEdit(lines_, symbolizer_, detail_);
    verdict_.json["edited"].update(effect.json);
    std::move(effect.text.begin(), effect.text.end(), std::back_inserter(verdict_.details));
    AddLiveChildren();
    counters_ = LastCounters();
    AddCounters();
    AddReportDamage(scratch + format::kReportFile, report_damage_);
    NoteLoss();
    verdict_.json["verdict"] = FailureName(end.failure);
    return std::move(verdict_);
  }

 private:
  void ReadLines(const std::string& scratch) {
    ReplayReport report = ReadReport(scratch);
    for (ReportLine& line : report.lines) LinesOf(line.child).push_back(std::move(line));
    report_damage_ = std::move(report.damage);
    verdict_.rank = rank_;
    verdict_.json = {{"rank", verdict_.rank}, {"recorded_end", summary_.HowItEnded(symbolizer_)}};
  }

  // Where lines about the process `name` of the rank belong.
  std::vector<ReportLine>& LinesOf(const std::string& name) {
    if (name == child_) return lines_;
    return child_.empty() || name.starts_with(child_ + "/") ? child_lines_ : other_lines_;
  }

  // The status of a child, whose parent has waited for it.
  [[nodiscard]] int ReportedStatus() const {
    const auto* exit = FindLine<ExitLine>(lines_);
    const auto* crash = FindLine<CrashLine>(lines_);
    if (exit != nullptr) return W_EXITCODE(exit->code.value_or(0) & 0xff, 0);
    return crash != nullptr ? crash->signal : 0;
  }

  // For a child that has not said how it ended: it was killed, if it ever began.
  void JudgeMissingEnd() {
    counters_ = CountersOf(FindLine<CountedLine>(lines_));
    if (FindLine<StartLine>(lines_) == nullptr) return Differs("it was not started");
    const bool was_killed = summary_.fate.known && summary_.fate.signal != 0 && !summary_.exit;
    if (was_killed) return Same("killed by " + SignalName(static_cast<int>(summary_.fate.signal)));
    Differs("it ended without a word");
  }

  // The other processes of the rank, where the child did not do the same: one of them may have
  // been the first.
  void AddOthers() {
    verdict_.json["child"] = child_;
    if (verdict_.outcome == Outcome::kSame) return;
    std::set<std::string> told;
    for (const ReportLine& line : other_lines_) {
      const std::string who = line.child.empty() ? "the rank itself" : "child " + line.child;
      const auto* divergence = line.As<DivergenceLine>();
      if (divergence == nullptr || !told.insert(who).second) continue;
      for (std::string& text : DivergenceLines(*divergence, symbolizer_, detail_))
        verdict_.details.push_back(fmt::format("{}: {}", who, std::move(text)));
    }
  }

  void Fail(const std::string& message) {
    verdict_.outcome = Outcome::kFailed;
    verdict_.summary = message;
  }

  bool StoppedAtDivergence(int wait_status) const {
    return FindLine<DivergenceLine>(lines_) != nullptr &&
           FindLine<CountedLine>(lines_) != nullptr && WIFEXITED(wait_status) &&
           FindLine<ExitLine>(lines_) == nullptr;
  }

  [[nodiscard]] bool RecordedCrashIsTheEnd() const {
    if (!summary_.crash) return false;
    // A signal that the program survived is not how it ended.
    return !(summary_.exit && summary_.fate.known && summary_.fate.signal == 0);
  }

  void Same(const std::string& what) {
    verdict_.outcome = Outcome::kSame;
    verdict_.summary = what + ", the same as recorded";
  }
  void Differs(const std::string& what) {
    verdict_.outcome = Outcome::kDiverged;
    verdict_.summary = what + "; the recorded run: " + summary_.HowItEnded(symbolizer_);
  }

  void JudgeSignal(int signal, const CrashLine* crash) {
    counters_ = CountersOf(crash);
    if (crash == nullptr) counters_ = CountersOf(FindLine<CountedLine>(lines_));
    const std::string name = SignalName(signal);
    // The recording knows from its parent only how the rank ended, not where.
    if (!summary_.crash && summary_.fate.known && static_cast<int>(summary_.fate.signal) == signal)
      return Same(name);
    // A launcher had started the recorded process, so how it ended is not in the recording.
    const bool unseen = !summary_.crash && !summary_.exit && !summary_.fate.known;
    if (crash == nullptr && counters_ != nullptr && signal == SIGKILL && unseen &&
        counters_->remaining == 0)
      return Same(fmt::format("{}, which the program sent to itself", name));
    if (crash == nullptr) {
      Differs(fmt::format("the replay was ended by {} from outside", name));
      return;
    }
    const std::vector<Place> live_frames = LiveFrames(*crash);
    const Place live = CrashPlace(live_frames);
    // The place in the program's own code is what a reader wants to see.
    std::string where = PlaceText(live, symbolizer_, true);
    if (auto frame = summary_.crash ? ProgramPlace() : std::nullopt) where = *frame;
    verdict_.json["signal"] = name;
    verdict_.json["module"] = live.module;
    verdict_.json["offset"] = live.offset;
    if (!RecordedCrashIsTheEnd()) return DiffersByCrash(name, live, *crash);
    const Place recorded = CrashPlace(RecordedFrames(summary_));
    const bool same_place =
        FileName(recorded.module) == FileName(live.module) && recorded.offset == live.offset;
    if (summary_.crash->signal == signal && same_place)
      return Same(fmt::format("{} at {}", name, where));
    DiffersByCrash(name, live, *crash);
  }

  void DiffersByCrash(const std::string& signal, const Place& live, const CrashLine& crash) {
    Differs(fmt::format("{} at {}", signal, PlaceText(live, symbolizer_, true)));
    for (std::string& text : CrashLines(crash, symbolizer_))
      verdict_.details.push_back(std::move(text));
  }

  std::optional<std::string> ProgramPlace() {
    auto stack = summary_.stacks.find(summary_.crash->stack);
    const auto& frames = summary_.crash->frames.empty() && stack != summary_.stacks.end()
                             ? stack->second
                             : summary_.crash->frames;
    auto frame = summary_.ProgramFrame(symbolizer_, frames, true);
    if (!frame) return std::nullopt;
    return frame->Place();
  }

  void JudgeExit(int code, const ExitLine* exit) {
    counters_ = CountersOf(exit);
    static const CountersPart none;
    const CountersPart& counted = counters_ == nullptr ? none : *counters_;
    verdict_.json["exit_code"] = code;
    constexpr uint32_t kExec = 2;  // preload::ExitHow
    if (!child_.empty() && exit != nullptr && exit->how == kExec && WasReplaced(reader_))
      return Same("replaced itself by exec");
    const std::string what = fmt::format("exit {}", code);
    const bool recorded_exit = summary_.exit.has_value() && !RecordedCrashIsTheEnd();
    if (recorded_exit && (summary_.exit->code & 0xff) == code) {
      const uint64_t left = counted.remaining_on_last_thread.value_or(0);
      if (left != 0) return Differs(fmt::format("{}, with {} recorded calls not made", what, left));
      if (const std::string missed = MissedSignals(exit); !missed.empty()) {
        verdict_.json["missed_signals"] = *exit->missed_signals;
        return Differs(fmt::format("{}, {}", what, missed));
      }
      return Same(what);
    }
    // By who has waited for it.
    const bool seen_exit = summary_.fate.known && summary_.fate.signal == 0;
    if (!recorded_exit && !RecordedCrashIsTheEnd() && counted.remaining == 0) {
      if (seen_exit && summary_.fate.exit_code == code) return Same(what);
      verdict_.outcome = Outcome::kSame;
      verdict_.summary = fmt::format(
          "{}, after everything that was recorded (the recording does not say how the "
          "rank ended)",
          what);
      return;
    }
    // The program does not know when a signal from another process arrives.
    if (EndedFromOutside() && counted.remaining == 0) {
      verdict_.outcome = Outcome::kSame;
      verdict_.summary =
          fmt::format("{}, after everything that was recorded, where another process ended it: {}",
                      what, summary_.HowItEnded(symbolizer_));
      return;
    }
    Differs(what);
  }

  [[nodiscard]] bool EndedFromOutside() const {
    return RecordedCrashIsTheEnd() && summary_.crash->code <= 0 &&
           summary_.crash->sender_pid != 0 &&
           static_cast<uint32_t>(summary_.crash->sender_pid) != reader_.header().process.pid;
  }

  void JudgeEnd(const EndLine& end) {
    counters_ = CountersOf(&end);
    if (end.how != "reached") return Differs(end.text);
    verdict_.outcome = Outcome::kSame;
    verdict_.summary = "the end of the recording is reached: " + summary_.HowItEnded(symbolizer_);
    verdict_.json["end_of_recording"] = true;
    verdict_.json["parked"] = ToJson(end.parked);
    for (const ParkedPart& parked : end.parked) ExplainParked(parked);
  }

  // "rank 3 entered AllReduce #1204 of comm 0 and never left; rank 5 never entered it: …"
  void ExplainParked(const ParkedPart& parked) {
    const uint64_t seq = parked.comm_seq;
    const std::string& api = parked.api;
    if (!parked.entered) return;
    if (!parked.comm || seq == 0) {
      verdict_.details.push_back(
          fmt::format("rank {} entered {} and never left", verdict_.rank, api));
      return;
    }
    const uint32_t number = *parked.comm;
    verdict_.details.push_back(fmt::format("rank {} entered {} #{} of comm {} and never left",
                                           verdict_.rank, api, seq, number));
    auto own = summary_.comms.find(number);
    if (own == summary_.comms.end()) return;
    CommNames names;
    for (const PeerSummary& peer : peers_)
      for (const auto& [id, comm] : peer.summary.comms) names.Add(comm.hash, comm.joined_as);
    const uint64_t hash = names.Of(own->second.hash);
    for (const PeerSummary& peer : peers_) {
      if (peer.rank == verdict_.rank) continue;
      for (const auto& [id, comm] : peer.summary.comms) {
        if (names.Of(comm.hash) != hash || comm.last_seq >= seq) continue;
        verdict_.details.push_back(fmt::format("rank {} never entered it: {}", peer.rank,
                                               peer.summary.HowItEnded(symbolizer_)));
      }
    }
  }

  void AddDivergences() {
    size_t shown = 0;
    json all = json::array();
    for (const ReportLine& line : lines_) {
      const auto* divergence = line.As<DivergenceLine>();
      if (divergence == nullptr) continue;
      if (verdict_.outcome == Outcome::kSame) {
        verdict_.outcome = Outcome::kDiverged;
        verdict_.summary += ", but it diverged on the way";
      }
      all.push_back(ToJson(line));
      if (shown++ != 0) continue;
      verdict_.diverged_at = PlaceOf(*divergence);
      for (std::string& text : DivergenceLines(*divergence, symbolizer_, detail_))
        verdict_.details.push_back(std::move(text));
    }
    if (shown > 1)
      verdict_.details.push_back(fmt::format("{} more divergences followed", shown - 1));
    if (shown != 0) verdict_.json["divergences"] = all;
  }

  // The counters of the line that ends the report, whichever that is.
  [[nodiscard]] const CountersPart* LastCounters() const {
    const CountersPart* last = nullptr;
    for (const ReportLine& line : lines_) {
      const CountersPart* found = nullptr;
      if (const auto* exit = line.As<ExitLine>()) found = CountersOf(exit);
      if (const auto* crash = line.As<CrashLine>()) found = CountersOf(crash);
      if (const auto* end = line.As<EndLine>()) found = CountersOf(end);
      if (const auto* failed = line.As<FailedLine>()) found = CountersOf(failed);
      if (const auto* counted = line.As<CountedLine>()) found = CountersOf(counted);
      if (found != nullptr) last = found;
    }
    return last;
  }

  // Children that went another way than recorded; each says so in its own lines of the report.
  void AddChildren() {
    uint64_t started = 0;
    std::set<std::string> told;
    for (const ReportLine& line : child_lines_) {
      const std::string child = "child " + line.child;
      started += line.As<StartLine>() != nullptr ? 1 : 0;
      const auto* divergence = line.As<DivergenceLine>();
      const auto* failed = line.As<FailedLine>();
      const auto* end = line.As<EndLine>();
      if (end != nullptr && end->how == "reached") end = nullptr;
      std::string text = failed != nullptr ? failed->message
                         : end != nullptr  ? end->text
                                           : MissedSignals(line.As<ExitLine>());
      if (divergence == nullptr && text.empty()) continue;
      if (verdict_.outcome == Outcome::kSame) {
        verdict_.outcome = Outcome::kDiverged;
        verdict_.summary += fmt::format(", but its {} diverged", child);
      }
      verdict_.json["child_divergences"].push_back(ToJson(line));
      if (!told.insert(child).second) continue;
      if (divergence == nullptr) {
        verdict_.details.push_back(fmt::format("{}: {}", child, std::move(text)));
        continue;
      }
      for (std::string& told_line : DivergenceLines(*divergence, symbolizer_, detail_))
        verdict_.details.push_back(fmt::format("{}: {}", child, std::move(told_line)));
    }
    for (const std::vector<ReportLine>* lines : {&lines_, &child_lines_})
      for (const ReportLine& line : *lines)
        if (const auto* end = line.As<ChildEndLine>()) AddChildEnd(line, *end);
    AddLiveChildren();
    verdict_.json["children_replayed"] = started;
    if (started != 0)
      verdict_.summary += fmt::format("; {} {} replayed", started,
                                      started == 1 ? "child process" : "child processes");
  }

  // Children that asked the machine: what they did may differ from what they did in the recorded
  // run.
  void AddLiveChildren() {
    static constexpr size_t kMost = 3;
    json names = json::array();
    for (const ReportLine& line : lines_)
      if (const auto* live = line.As<ChildLiveLine>()) names.push_back(live->name);
    if (names.empty()) return;
    verdict_.json["children_live"] = names;
    for (size_t i = 0; i < std::min(names.size(), kMost); ++i)
      verdict_.details.push_back(fmt::format("child {} ran live: the trace has no recording of it",
                                             names[i].get<std::string>()));
    if (names.size() > kMost)
      verdict_.details.push_back(
          fmt::format("so did {} more child processes", names.size() - kMost));
  }

  void AddChildEnd(const ReportLine& line, const ChildEndLine& end) {
    std::string text = fmt::format("child process {} ended with {}; recorded: {}", end.pid,
                                   end.live, end.recorded);
    if (end.is_live) text += "; its program is not recorded (static, or of Go), and ran live";
    verdict_.json[end.is_live ? "live_child_ends" : "child_divergences"].push_back(ToJson(line));
    verdict_.details.push_back(text);
    AddChildCrash(end.pid);
    if (end.is_live || verdict_.outcome != Outcome::kSame) return;
    verdict_.outcome = Outcome::kDiverged;
    verdict_.summary += ", but " + text;
  }

  // `pid`: the recorded one, of a child that did not end as recorded.
  void AddChildCrash(int32_t pid) {
    for (const ReportLine& line : child_lines_) {
      const auto* crash = line.As<CrashLine>();
      if (crash == nullptr || crash->pid != pid) continue;
      for (std::string& text : CrashLines(*crash, symbolizer_))
        verdict_.details.push_back(fmt::format("child {}: {}", line.child, std::move(text)));
      verdict_.json["child_crashes"].push_back(ToJson(line));
      return;
    }
  }

  void AddCounters() {
    if (counters_ == nullptr) return;
    const uint64_t operations = counters_->operations;
    const uint64_t compared = counters_->digests_compared;
    const uint64_t different = counters_->digests_different;
    verdict_.json["operations_served"] = operations;
    verdict_.json["digests_compared"] = compared;
    verdict_.json["digests_different"] = different;
    std::string text = fmt::format("; {} {} ", HumanCount(operations),
                                   operations == 1 ? "collective" : "collectives");
    if (counters_->computed) {
      const uint64_t computed = std::min(*counters_->computed, operations);
      verdict_.json["operations_served"] = operations - computed;
      verdict_.json["operations_computed"] = computed;
      text += computed == operations
                  ? "computed"
                  : fmt::format("made, {} of them computed", HumanCount(computed));
    } else {
      text += "served";
    }
    text +=
        fmt::format(", {} {} compared", HumanCount(compared), compared == 1 ? "digest" : "digests");
    // "all equal" beside "diverged" would contradict it: what diverged is no digest.
    const char* none = verdict_.outcome == Outcome::kSame ? ", all equal" : ", none different";
    if (compared != 0)
      text += different == 0 ? none : fmt::format(", {} different", HumanCount(different));
    verdict_.summary += text;
  }

  // Only the program itself can have written over the report.
  void AddReportDamage(const std::string& path, const std::vector<std::string>& damage) {
    if (damage.empty()) return;
    verdict_.json["report_damage"] = damage;
    verdict_.details.push_back(fmt::format(
        "reading the replay's report: {}: {}{}; the result leaves out {}", path, damage.front(),
        damage.size() == 1 ? "" : fmt::format(", and {} more damaged lines", damage.size() - 1),
        damage.size() == 1 ? "that line" : "those lines"));
  }

  // The tail goes on where the files stop. It may hold no event: all had been written.
  [[nodiscard]] bool HasTail() const {
    std::error_code error;
    return reader_.end().tail_events != 0 ||
           std::filesystem::exists(std::string(reader_.header().tail.path), error);
  }

  void NoteUnseen() {
    const auto* unseen = FindLine<UnseenLine>(lines_);
    if (unseen == nullptr) return;
    verdict_.json["unseen"] = unseen->why;
    verdict_.summary += "; no verdict after the point where " + unseen->why;
  }

  void NoteLoss() {
    const format::Footer& totals = reader_.totals();
    // A file that stops without an end, and no tail that goes on from there: the file was cut.
    const bool cut =
        reader_.end().state != format::EndState::kCleanEnd && !summary_.running && !HasTail();
    if (totals.events_lost + totals.payloads_lost != 0 || cut || !summary_.degraded.empty()) {
      verdict_.data_lost = true;
      verdict_.details.push_back(fmt::format(
          "the recording of rank {} is not complete: {}", verdict_.rank,
          summary_.degraded.empty() ? reader_.end().detail : summary_.degraded.front()));
    }
    verdict_.json["verdict"] = OutcomeName(verdict_.outcome);
    verdict_.json["summary"] = verdict_.summary;
    verdict_.json["details"] = verdict_.details;
    verdict_.json["data_lost"] = verdict_.data_lost;
  }

  const uint32_t rank_;
  const format::RankReader& reader_;
  const RankSummary& summary_;
  const std::vector<PeerSummary>& peers_;
  Symbolizer& symbolizer_;
  const StackDetail detail_;
  const std::string child_;
  std::vector<ReportLine> lines_;        // of the process that is judged
  std::vector<ReportLine> child_lines_;  // of its children
  std::vector<ReportLine> other_lines_;  // of other processes of the rank
  std::vector<std::string> report_damage_;
  const CountersPart* counters_ = nullptr;
  ReplayVerdict verdict_;
};

}  // namespace

const char* OutcomeName(Outcome outcome) {
  static constexpr const char* kNames[] = {"same", "diverged", "failed"};
  return kNames[static_cast<int>(outcome)];
}

ReplayVerdict JudgeReplay(const format::RankReader& reader, const RankSummary& summary,
                          const std::vector<PeerSummary>& peers, const std::string& scratch,
                          int wait_status, Symbolizer& symbolizer, StackDetail detail) {
  return Judge(reader.header().rank, reader, summary, peers, symbolizer, detail, "")
      .Run(scratch, wait_status);
}

ReplayVerdict JudgeEdited(const format::RankReader& reader, const RankSummary& summary,
                          const std::string& scratch, int wait_status, Symbolizer& symbolizer,
                          StackDetail detail) {
  return Judge(reader.header().rank, reader, summary, {}, symbolizer, detail, "")
      .RunEdited(scratch, wait_status);
}

ReplayVerdict JudgeChild(uint32_t rank, const std::string& name, const format::RankReader& reader,
                         const std::string& scratch, Symbolizer& symbolizer, StackDetail detail) {
  const RankSummary summary = ReadRankSummary(reader);
  return Judge(rank, reader, summary, {}, symbolizer, detail, name).Run(scratch, 0);
}

}  // namespace deja::cli
