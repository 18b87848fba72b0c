// unawaited: tensors that the program changed while an operation, or a thread that saves them, was
// not done with them.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "check/findings/matchers.h"
#include "check/matching/standing.h"

namespace deja::check {
namespace {

std::string TextOfChange(const Job& job, const ChangeSeen& change) {
  const std::string times = change.times == 1 ? "once" : fmt::format("{} times", change.times);
  if (change.file.empty())
    return fmt::format("the tensor of {}{} was changed {} before the operation had ended{}",
                       change.what, job.AtSite(change.given), times, job.AtSite(change.at));
  return fmt::format(
      "\"{}\" was changed {} between when it was given to thread {}{} and when that had saved it "
      "in {}{}: the file need not have what it was",
      change.what, times, change.thread, job.AtSite(change.given), change.file,
      job.AtSite(change.at));
}

}  // namespace

void MatchChanges(const Job& job, Found& found) {
  struct Same {
    const ChangeSeen* first = nullptr;
    std::vector<uint32_t> ranks;
    size_t count = 0;
  };
  std::map<std::tuple<std::string, uint32_t, uint32_t>, Same> all;
  for (const RankSummary& rank : job.ranks) {
    for (const ChangeSeen& change : rank.seen.changes) {
      const std::string& what = change.file.empty() ? change.what : "";
      Same& same = all[{what, change.given, change.at}];
      ++same.count;
      if (same.first == nullptr || change.time_ns < same.first->time_ns) same.first = &change;
      if (same.ranks.empty() || same.ranks.back() != rank.rank) same.ranks.push_back(rank.rank);
    }
  }
  for (const auto& [key, same] : all) {
    const ChangeSeen& change = *same.first;
    Finding finding;
    finding.kind = Kind::kUnawaited;
    finding.blamed = same.ranks;
    finding.time_ns = change.time_ns;
    finding.sentence = fmt::format("on {} {}", RanksText(same.ranks), TextOfChange(job, change));
    if (same.count > same.ranks.size())
      finding.evidence.push_back(fmt::format("{} times in all", same.count));
    Side given;
    given.ranks = same.ranks;
    given.what = change.file.empty() ? change.what + " is issued" : "the thread is given it";
    given.site = job.sites[change.given];
    Side ended = given;
    ended.what = change.file.empty() ? "its end is seen" : "the thread has saved it";
    ended.site = job.sites[change.at];
    finding.sides = {given, ended};
    finding.next = {
        fmt::format("show RUN --rank {} --kind note,enter --stacks", same.ranks.front()),
        ReplayCommand(same.ranks.front())};
    found.findings.push_back(std::move(finding));
  }
}

}  // namespace deja::check
