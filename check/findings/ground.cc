// input: what the ranks ran on.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "check/findings/matchers.h"
#include "check/matching/standing.h"

namespace deja::check {
namespace {

using Values = std::map<std::string, std::vector<uint32_t>>;  // value to ranks

struct Ground {
  std::string name;
  Values values;
};

// What is not the same on all ranks. Libraries that some have not loaded are no difference: a rank
// loads what it comes to.
std::vector<Ground> Differences(const Job& job) {
  std::map<std::string, Values> all;
  for (const RankSummary& rank : job.ranks)
    for (const auto& [name, value] : rank.surroundings) all[name][value].push_back(rank.rank);
  std::vector<Ground> differences;
  for (auto& [name, values] : all) {
    size_t with_value = 0;
    for (const auto& [value, ranks] : values) with_value += ranks.size();
    const bool is_library = name.rfind("library ", 0) == 0;
    if (with_value < job.ranks.size() && !is_library) {
      Values& missing = values;
      std::set<uint32_t> those;
      for (const auto& [value, ranks] : values) those.insert(ranks.begin(), ranks.end());
      for (const RankSummary& rank : job.ranks)
        if (those.count(rank.rank) == 0) missing[""].push_back(rank.rank);
    }
    if (values.size() > 1) differences.push_back({name, std::move(values)});
  }
  return differences;
}

std::string Text(const Ground& ground) {
  std::string text;
  size_t shown = 0;
  for (const auto& [value, ranks] : ground.values) {
    constexpr size_t kShown = 4;
    constexpr size_t kLongest = 60;
    if (!text.empty()) text += ", ";
    if (shown++ == kShown)
      return text + fmt::format("{} values more", ground.values.size() - kShown);
    const std::string shortened = value.size() > kLongest ? value.substr(0, kLongest) + "…" : value;
    text += fmt::format("{} on {}", value.empty() ? "not set" : shortened, RanksText(ranks));
  }
  return fmt::format("{} differs: {}", ground.name, text);
}

// Where the ranks of a whole communicator all entered a call long ago and none came out of it.
const Call* FindHang(const Job& job, const Communicator*& where) {
  for (const Communicator& communicator : job.communicators) {
    if (!communicator.IsWhole() || communicator.nranks < 2) continue;
    const size_t size = job.CommOf(communicator.members.front()).collectives.size();
    const bool all =
        size != 0 &&
        std::all_of(communicator.members.begin(), communicator.members.end(), [&](const Member& m) {
          const CallList& calls = job.CommOf(m).collectives;
          const RankSummary& rank = job.RankOf(m);
          const bool lives = rank.end.kind != EndKind::kExit && rank.end.kind != EndKind::kSignal;
          return calls.size() == size && !calls.back().Is(kDone) && lives && !rank.is_partial &&
                 WaitedLong(job, rank, job.CommOf(m), calls.back());
        });
    if (!all) continue;
    where = &communicator;
    return &job.CommOf(communicator.members.front()).collectives.back();
  }
  return nullptr;
}

}  // namespace

void MatchSurroundings(const Job& job, Found& found) {
  const std::vector<Ground> differences = Differences(job);
  const Communicator* where = nullptr;
  const Call* hang = found.findings.empty() ? FindHang(job, where) : nullptr;
  if (hang == nullptr || differences.empty()) {
    for (const Ground& ground : differences) found.notes.push_back(Text(ground));
    if (hang != nullptr)
      found.notes.push_back(fmt::format(
          "all ranks of {} entered {} #{}{} and none came out of it; nothing that is recorded "
          "differs between them",
          job.NameOf(*where), job.SignatureText(*hang), hang->seq, job.AtSite(hang->site)));
    return;
  }
  Finding finding;
  finding.kind = Kind::kInput;
  finding.comm = job.NameOf(*where);
  finding.members = job.RanksOf(*where);
  const CommSummary& comm = job.CommOf(where->members.front());
  finding.number = comm.collectives.size() + comm.left_out;
  finding.step = hang->step;
  finding.time_ns = hang->time_ns;
  const Ground& first = differences.front();
  const auto most = std::max_element(
      first.values.begin(), first.values.end(),
      [](const auto& a, const auto& b) { return a.second.size() < b.second.size(); });
  for (const auto& [value, ranks] : first.values)
    if (&ranks != &most->second)
      finding.blamed.insert(finding.blamed.end(), ranks.begin(), ranks.end());
  std::sort(finding.blamed.begin(), finding.blamed.end());
  finding.sentence = fmt::format(
      "all ranks of {} entered {} #{}{} and none came out of it; the ranks do not run on the same: "
      "{}",
      finding.comm, job.SignatureText(*hang), hang->seq, job.AtSite(hang->site), Text(first));
  for (size_t i = 1; i < differences.size(); ++i) finding.evidence.push_back(Text(differences[i]));
  Side side = SideOf(job, where->members.front(), *hang);
  side.ranks = finding.members;
  finding.sides = {side};
  finding.next = {ShowCommand(side)};
  found.findings.push_back(std::move(finding));
}

}  // namespace deja::check
