// group: communicators that ranks made in another order, or with other members.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "check/matchers.h"
#include "check/standing.h"

namespace deja::check {
namespace {

// Ranks that are making a communicator at the end and have waited long for the others.
struct Making {
  size_t rank = 0;
  const OpenCall* call = nullptr;
};

std::vector<Making> StuckMakers(const Job& job) {
  constexpr uint64_t kLong = 1'000'000'000;
  std::vector<Making> makers;
  for (size_t r = 0; r < job.ranks.size(); ++r) {
    const RankSummary& rank = job.ranks[r];
    const bool lives = rank.end.kind != EndKind::kExit && rank.end.kind != EndKind::kSignal;
    for (const OpenCall& call : rank.open)
      if (lives && call.makes_communicator && job.last_time_ns >= call.time_ns + kLong)
        makers.push_back({r, &call});
  }
  return makers;
}

// What a rank has done last before it made a communicator that it cannot finish.
Side SideOfMaker(const Job& job, const Making& making) {
  Side side;
  side.ranks = {job.ranks[making.rank].rank};
  const size_t made = job.ranks[making.rank].comms.size();
  side.what = fmt::format("in {} (entered, never left), communicator {} that it makes",
                          making.call->name, made);
  side.site = job.sites[making.call->site];
  return side;
}

}  // namespace

void MatchGroups(const Job& job, Found& found) {
  const std::vector<Making> makers = StuckMakers(job);
  if (makers.empty()) return;
  Finding finding;
  finding.kind = Kind::kGroup;
  // By where in the program they are and how many they had made: one side each.
  std::map<std::pair<uint32_t, size_t>, std::vector<Making>> sides;
  for (const Making& making : makers)
    sides[{making.call->site, job.ranks[making.rank].comms.size()}].push_back(making);
  std::set<uint32_t> stuck;
  for (const auto& [key, members] : sides) {
    Side side = SideOfMaker(job, members.front());
    side.ranks.clear();
    for (const Making& making : members) side.ranks.push_back(job.ranks[making.rank].rank);
    stuck.insert(side.ranks.begin(), side.ranks.end());
    finding.sides.push_back(std::move(side));
    const OpenCall& call = *members.front().call;
    if (finding.time_ns == 0 || call.time_ns < finding.time_ns) finding.time_ns = call.time_ns;
  }
  std::stable_sort(finding.sides.begin(), finding.sides.end(),
                   [](const Side& a, const Side& b) { return a.ranks.size() < b.ranks.size(); });
  std::vector<uint32_t> others;
  for (const RankSummary& rank : job.ranks)
    if (stuck.count(rank.rank) == 0) others.push_back(rank.rank);
  std::string text;
  for (const Side& side : finding.sides)
    text += fmt::format("{}{} {}{}", text.empty() ? "" : "; ", RanksText(side.ranks), side.what,
                        side.site.empty() ? "" : " at " + Describe(side.site));
  // Ranks that are not to be in it are not missed.
  const bool of_all = makers.front().call->nranks == job.ranks.size();
  const bool two_places = finding.sides.size() > 1;
  if (!two_places && (others.empty() || !of_all)) {
    found.notes.push_back("ranks wait in making a communicator: " + text);
    return;
  }
  finding.blamed = two_places ? finding.sides.front().ranks : others;
  for (const uint32_t rank : stuck)
    if (std::find(finding.blamed.begin(), finding.blamed.end(), rank) == finding.blamed.end())
      finding.waiting.push_back(rank);
  if (two_places) {
    others.clear();
    finding.sentence = "the ranks make different communicators: " + text;
  } else {
    const bool ended = std::any_of(job.ranks.begin(), job.ranks.end(), [&](const auto& rank) {
      return stuck.count(rank.rank) == 0 && (EndedOnItsOwn(rank) || rank.end.Well());
    });
    finding.kind = ended ? Kind::kLeftEarly : Kind::kMissing;
    finding.sentence =
        fmt::format("{} did not come to make a communicator: {}", RanksText(others), text);
  }
  for (size_t r = 0; r < job.ranks.size() && !others.empty(); ++r) {
    if (job.ranks[r].rank != others.front()) continue;
    const Side side = StandingOf(job, r);
    finding.sentence += fmt::format("; rank {} {}{}", others.front(), side.what,
                                    side.site.empty() ? "" : " at " + Describe(side.site));
    finding.sides.push_back(side);
  }
  finding.next.push_back(
      fmt::format("show RUN --rank {} --last 20 --stacks", finding.blamed.front()));
  found.findings.push_back(std::move(finding));
}

}  // namespace deja::check
