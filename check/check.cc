#include "check/check.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "check/findings/fold.h"
#include "check/findings/matchers.h"

namespace deja::check {
namespace {

// What the recording does not have, so that nothing is found where nothing can be.
void NoteLimits(const Job& job, Report& report) {
  std::map<std::string, std::vector<uint32_t>> partial;
  std::vector<uint32_t> without_digests;
  uint32_t world_size = 0;
  for (const RankSummary& rank : job.ranks) {
    world_size = std::max(world_size, rank.world_size);
    if (rank.is_partial) partial[rank.unknown].push_back(rank.rank);
    if (!rank.has_digests) without_digests.push_back(rank.rank);
  }
  for (const auto& [why, ranks] : partial) {
    report.is_damaged = true;
    report.notes.push_back(
        fmt::format("{}: events are missing ({}); where and how they differ from "
                    "the others is not compared",
                    RanksText(ranks), why));
  }
  if (!without_digests.empty())
    report.notes.push_back(
        fmt::format("{}: recorded at level order, without digests: NaNs, replicas and copies are "
                    "not checked",
                    RanksText(without_digests)));
  if (job.ranks.size() < world_size) {
    std::vector<uint32_t> absent;
    for (uint32_t rank = 0, next = 0; rank < world_size && absent.size() < 4096; ++rank) {
      if (next < job.ranks.size() && job.ranks[next].rank == rank)
        ++next;
      else
        absent.push_back(rank);
    }
    report.notes.push_back(
        fmt::format("not in the trace: {} of {}; communicators that they are in are compared among "
                    "the other ranks",
                    RanksText(absent), world_size));
  }
  for (const Communicator& communicator : job.communicators)
    if (communicator.is_ambiguous)
      report.notes.push_back(
          fmt::format("{}: several communicators have one name, and which rank is in which is not "
                      "recorded; they are not compared",
                      job.NameOf(communicator)));
}

}  // namespace

std::string_view NameOf(Kind kind) {
  constexpr std::array<std::string_view, 16> kNames = {
      "signature", "order",      "missing",   "left-early", "pairing", "cycle",
      "group",     "nan-origin", "replica",   "corrupt",    "input",   "unawaited",
      "store",     "outside",    "straggler", "resume"};
  return kNames[static_cast<size_t>(kind)];
}

Report Check(const Job& job) {
  Report report;
  Found found;
  MatchCollectives(job, found);
  MatchTransfers(job, found);
  MatchWaits(job, found);
  MatchGroups(job, found);
  MatchNans(job, found);
  MatchResults(job, found);
  MatchNames(job, found);
  MatchWeights(job, found);
  MatchChanges(job, found);
  MatchStores(job, found);
  MatchLoaders(job, found);
  MatchStragglers(job, found);
  AddBranches(job, found);
  MatchSurroundings(job, found);
  report.findings = Fold(std::move(found.findings));
  report.notes = std::move(found.notes);
  NoteLimits(job, report);
  return report;
}

}  // namespace deja::check
