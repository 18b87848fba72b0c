// group: communicators that ranks made in another order, or with other members.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "check/findings/matchers.h"
#include "check/matching/standing.h"

namespace deja::check {
namespace {

// A rank that is making a communicator at the end and has waited long for the others.
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

// Ranks that make one communicator, as far as they know.
using Makers = std::vector<std::vector<Making>>;

// By where in the program they are, how many they had made before, and what they make. Names and
// ids of parts of the job differ on purpose, so those count only where all are to be in it.
Makers Sides(const Job& job, const std::vector<Making>& makers) {
  std::map<std::tuple<uint32_t, size_t, uint64_t, uint64_t>, std::vector<Making>> sides;
  for (const Making& making : makers) {
    const bool of_all = making.call->nranks == job.ranks.size();
    sides[{making.call->site, job.ranks[making.rank].comms.size(), making.call->nranks,
           of_all ? making.call->identity : 0}]
        .push_back(making);
  }
  Makers list;
  for (auto& [key, members] : sides) list.push_back(std::move(members));
  std::stable_sort(list.begin(), list.end(),
                   [](const auto& a, const auto& b) { return a.size() < b.size(); });
  return list;
}

std::vector<uint32_t> RanksOfMakers(const Job& job, const std::vector<Making>& makers) {
  std::vector<uint32_t> ranks;
  ranks.reserve(makers.size());
  for (const Making& making : makers) ranks.push_back(job.ranks[making.rank].rank);
  std::sort(ranks.begin(), ranks.end());
  return ranks;
}

std::vector<uint32_t> MembersOf(const OpenCall& call) {
  return {call.members.begin(), call.members.end()};
}

// Ranks of the job that some of the makers wait for, and that are not making what these make.
std::vector<uint32_t> AbsentMembers(const Job& job, const std::vector<Making>& makers) {
  std::set<uint32_t> absent;
  std::set<std::pair<uint32_t, std::vector<uint64_t>>> makes;
  std::set<uint32_t> numbers;
  for (const RankSummary& rank : job.ranks) numbers.insert(rank.rank);
  for (const Making& making : makers)
    makes.emplace(job.ranks[making.rank].rank, making.call->members);
  for (const Making& making : makers)
    for (const uint32_t member : MembersOf(*making.call))
      if (numbers.count(member) != 0 && makes.count({member, making.call->members}) == 0)
        absent.insert(member);
  return {absent.begin(), absent.end()};
}

Side SideOfMakers(const Job& job, const std::vector<Making>& makers) {
  Side side;
  side.ranks = RanksOfMakers(job, makers);
  const OpenCall& call = *makers.front().call;
  side.what = fmt::format("in {} (entered, never left) of communicator {}", call.name,
                          job.ranks[makers.front().rank].comms.size());
  if (!call.members.empty())
    side.what += ", " + RanksText(MembersOf(call));
  else if (call.nranks != 0)
    side.what += fmt::format(", {} ranks", call.nranks);
  side.site = job.sites[call.site];
  return side;
}

// Ranks that claim one place in what has one name.
std::vector<uint32_t> Claimants(const Job& job, const std::vector<Making>& makers) {
  std::map<std::tuple<uint64_t, uint64_t, int64_t>, std::vector<uint32_t>> claims;
  for (const Making& making : makers)
    if (making.call->place >= 0)
      claims[{making.call->identity, making.call->nranks, making.call->place}].push_back(
          job.ranks[making.rank].rank);
  for (auto& [claim, ranks] : claims)
    if (ranks.size() > 1) return ranks;
  return {};
}

std::vector<uint32_t> OthersThan(const Job& job, const std::vector<uint32_t>& ranks) {
  std::vector<uint32_t> others;
  for (const RankSummary& rank : job.ranks)
    if (!std::binary_search(ranks.begin(), ranks.end(), rank.rank)) others.push_back(rank.rank);
  return others;
}

std::string SidesText(const std::vector<Side>& sides) {
  std::string text;
  for (const Side& side : sides)
    text += fmt::format("{}{} {}{}", text.empty() ? "" : "; ", RanksText(side.ranks), side.what,
                        side.site.empty() ? "" : " at " + Describe(side.site));
  return text;
}

// Adds where the ranks are that the others wait for.
void Blame(const Job& job, const std::vector<uint32_t>& absent, Finding& finding) {
  bool ended = false;
  for (size_t r = 0; r < job.ranks.size(); ++r) {
    const RankSummary& rank = job.ranks[r];
    if (!std::binary_search(absent.begin(), absent.end(), rank.rank)) continue;
    finding.blamed.push_back(rank.rank);
    ended = ended || EndedOnItsOwn(rank) || rank.end.Well();
    if (finding.blamed.size() == 1) finding.sides.push_back(StandingOf(job, r));
  }
  finding.kind = ended ? Kind::kLeftEarly : Kind::kMissing;
  const Side& where = finding.sides.back();
  finding.sentence += fmt::format("; rank {} {}{}", where.ranks.front(), where.what,
                                  where.site.empty() ? "" : " at " + Describe(where.site));
}

}  // namespace

void MatchGroups(const Job& job, Found& found) {
  const std::vector<Making> makers = StuckMakers(job);
  if (makers.empty()) return;
  const std::vector<uint32_t> stuck = RanksOfMakers(job, makers);
  const bool somebody_left = std::any_of(job.ranks.begin(), job.ranks.end(), EndedOnItsOwn);
  Finding finding;
  finding.kind = Kind::kGroup;
  finding.time_ns = makers.front().call->time_ns;
  for (const Making& making : makers)
    finding.time_ns = std::min(finding.time_ns, making.call->time_ns);
  const Makers sides = Sides(job, makers);
  for (const std::vector<Making>& side : sides) finding.sides.push_back(SideOfMakers(job, side));
  const std::string text = SidesText(finding.sides);
  const std::vector<uint32_t> claimants = Claimants(job, makers);
  const bool of_all = makers.front().call->nranks == job.ranks.size();
  if (!claimants.empty()) {
    finding.blamed = claimants;
    finding.sentence = fmt::format("{} claim one place in a communicator of one name: {}",
                                   RanksText(claimants), text);
  } else if (sides.size() > 1 && !somebody_left) {
    finding.blamed = finding.sides.front().ranks;
    finding.sentence = "the ranks make different communicators: " + text;
  } else if (of_all && stuck.size() < job.ranks.size()) {
    finding.sentence = "not all ranks make a communicator: " + text;
    Blame(job, OthersThan(job, stuck), finding);
  } else if (const std::vector<uint32_t> absent = AbsentMembers(job, makers); !absent.empty()) {
    finding.sentence = "not all members make a communicator: " + text;
    Blame(job, absent, finding);
    // Those that are making another one wait, too.
    if (std::find_first_of(absent.begin(), absent.end(), stuck.begin(), stuck.end()) !=
        absent.end())
      finding.kind = Kind::kGroup;
  } else {
    found.notes.push_back("ranks wait in making a communicator: " + text);
    return;
  }
  for (const uint32_t rank : stuck)
    if (std::find(finding.blamed.begin(), finding.blamed.end(), rank) == finding.blamed.end())
      finding.waiting.push_back(rank);
  finding.next.push_back(
      fmt::format("show RUN --rank {} --last 20 --stacks", finding.blamed.front()));
  found.findings.push_back(std::move(finding));
}

}  // namespace deja::check
