#include "cli/record/record_summary.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <system_error>
#include <utility>

#include "cli/doctor/doctor.h"
#include "cli/events/rank_summary.h"
#include "cli/output.h"
#include "cli/record/launcher.h"
#include "cli/summaries/culprit.h"
#include "cli/summaries/window_summary.h"
#include "format/layout/rank_folder.h"
#include "format/reader/rank_reader.h"

namespace deja::cli {
namespace {

namespace fs = std::filesystem;

// A rank's recording, read where the job did not end well.
struct ReadRank {
  const SweptRank* swept = nullptr;
  std::unique_ptr<format::RankReader> reader;
  RankSummary summary;
};

bool HasEndedWell(const SweptRank& rank) {
  return rank.fate.known && rank.fate.signal == 0 && rank.fate.exit_code == 0;
}

// None where it is known without that they ended well.
std::vector<ReadRank> ReadRanks(const std::vector<SweptRank>& ranks) {
  std::vector<ReadRank> read;
  if (std::all_of(ranks.begin(), ranks.end(), HasEndedWell)) return read;
  for (const SweptRank& rank : ranks) {
    auto reader = format::RankReader::Open(rank.folder);
    if (!reader) continue;
    RankSummary summary = ReadRankSummary(**reader);
    if (rank.fate.known) summary.fate = rank.fate;
    read.push_back({&rank, std::move(*reader), std::move(summary)});
  }
  return read;
}

// A line for each rank that ended badly, as `deja info` tells it. The rank to look at first.
std::optional<Culprit> SayHowTheyEnded(const std::vector<SweptRank>& ranks,
                                       const std::string& trace) {
  Symbolizer symbolizer;
  const std::vector<ReadRank> read = ReadRanks(ranks);
  std::vector<SuspectRank> last_attempts;
  for (const SweptRank& rank : ranks) {
    const auto found =
        std::find_if(read.begin(), read.end(), [&](const auto& one) { return one.swept == &rank; });
    std::string who = fmt::format("rank {}", rank.rank);
    if (rank.attempt > 0) who += fmt::format(", attempt {}", rank.attempt);
    if (rank.still_running)
      Diagnose(fmt::format(
          "recording: {}: process {} is still running; when it has ended, run: deja recover {}",
          who, rank.pid, trace));
    else if (found != read.end() && !found->summary.EndedWell())
      Diagnose(fmt::format("{}: {}", who, found->summary.HowItEnded(symbolizer)));
    else if (found == read.end() && rank.fate.known && !HasEndedWell(rank))
      Diagnose(fmt::format("{}: {}", who,
                           DescribeEnd(rank.fate.exit_code, static_cast<int>(rank.fate.signal))));
    if (!rank.error.empty()) Diagnose(fmt::format("{}: {}", who, rank.error));
    if (found == read.end() || rank.still_running) continue;
    if (!last_attempts.empty() && last_attempts.back().rank == rank.rank) last_attempts.pop_back();
    last_attempts.push_back({rank.rank, found->reader.get(), &found->summary});
  }
  return FindCulprit(last_attempts, symbolizer);
}

// Reports one rank for all, since ranks drop payloads about the same time.
void SayWhatIsKept(const std::vector<SweptRank>& ranks) {
  for (const SweptRank& rank : ranks) {
    auto reader = format::RankReader::Open(rank.folder);
    if (!reader) continue;
    const WindowSummary window = ReadWindowSummary(**reader);
    if (!window.drops()) continue;
    return Diagnose(fmt::format("rank {}: {}", rank.rank, window.Describe()));
  }
}

// What the recorder says is missing, once for all ranks that say it.
void SayWhatIsNotRecorded(const std::vector<SweptRank>& ranks) {
  std::map<std::string, std::vector<uint32_t>> who;  // by what
  for (const SweptRank& rank : ranks) {
    auto reader = format::RankReader::Open(rank.folder);
    if (!reader) continue;
    const auto cursor = (*reader)->Events();
    while (const format::Event* event =
               cursor->NextOf(format::KindBit(format::EventKind::kDegraded))) {
      const auto* degraded = event->As<format::Degraded>();
      if (degraded == nullptr || degraded->remark == 1) continue;
      if (degraded->events_lost + degraded->payloads_lost != 0)
        continue;  // `deja verify` tells them
      std::vector<uint32_t>& others = who[std::string(degraded->reason)];
      if (others.empty() || others.back() != rank.rank) others.push_back(rank.rank);
    }
  }
  for (const auto& [what, which] : who)
    Diagnose(fmt::format("not recorded: {} {}: {}", which.size() == 1 ? "rank" : "ranks",
                         fmt::join(which, ", "), what));
}

// What the program's files say of it: an NCCL of its own, no way for a library to come in.
void SayWhatHidesIt(const std::vector<std::string>& program) {
  std::vector<Finding> findings;
  CheckProgram({program, {}, {}}, FindPython(program), findings);
  for (const Finding& finding : findings)
    if (finding.severity == Severity::kProblem)
      Diagnose(fmt::format("{}; {}", finding.what, finding.fix));
}

}  // namespace

std::string ShownPath(const std::string& path) {
  std::error_code error;
  fs::path relative = fs::proximate(path, error);
  return error || relative.native().rfind("..", 0) == 0 ? path : relative.string();
}

void SayWhatWasRecorded(const Recorded& recorded, const std::vector<SweptRank>& ranks,
                        const SweptChildren& children) {
  std::string shown = ShownPath(recorded.trace);
  if (ranks.empty()) {
    Diagnose(
        recorded.single
            ? "nothing was recorded: the command did not load Deja's library (is it statically "
              "linked, or set-user-id?)"
            : "nothing was recorded: no process of the job created an NCCL communicator or a "
              "process group of PyTorch's that Deja sees; record a command without one with `deja "
              "record --single`");
    SayWhatHidesIt(recorded.program);
    return;
  }
  uint64_t bytes = 0;
  for (const std::vector<std::string>* folders : {&children.kept, &children.before_forks})
    for (const std::string& folder : *folders) bytes += format::FolderBytes(folder);
  uint64_t lost = children.events_lost + children.payloads_lost;
  uint32_t world_size = 0;
  for (const SweptRank& rank : ranks) {
    bytes += rank.bytes;
    lost += rank.events_lost + rank.payloads_lost;
    world_size = std::max(world_size, rank.world_size);
  }
  std::string and_children;
  if (!children.kept.empty())
    and_children =
        fmt::format(" and {} child process{} of theirs", HumanCount(children.kept.size()),
                    children.kept.size() == 1 ? "" : "es");
  Diagnose(fmt::format("recorded {} rank{}{} in {} ({})", ranks.size(),
                       ranks.size() == 1 ? "" : "s", and_children, shown, HumanBytes(bytes)));
  for (const std::string& error : children.errors) Diagnose(error);
  if (children.still_running != 0)
    Diagnose(
        fmt::format("recording: {} child processes are still running; when they have ended, run: "
                    "deja recover {}",
                    children.still_running, shown));
  if (ranks.size() < world_size && world_size <= 4096)
    Diagnose(
        fmt::format("the job has {} ranks; the others made no communicator, or are recorded "
                    "elsewhere",
                    world_size));
  const std::optional<Culprit> culprit = SayHowTheyEnded(ranks, shown);
  SayWhatIsKept(ranks);
  SayWhatIsNotRecorded(ranks);
  if (lost > 0)
    Diagnose(fmt::format("{} events or payloads are missing; list them with `deja verify {}`",
                         HumanCount(lost), shown));
  Diagnose(fmt::format("next: deja info {}", shown));
  if (!culprit || !recorded.replays_alone) return;
  // pdb is for ranks that are no forked children.
  const bool in_pdb = culprit->has_exception && children.before_forks.empty();
  Diagnose(fmt::format("      deja replay {} --rank {} {}    {}", shown, culprit->rank,
                       in_pdb ? "--pdb" : "--gdb", culprit->why));
}

}  // namespace deja::cli
