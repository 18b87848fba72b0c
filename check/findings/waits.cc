// cycle: who waits for whom at the end, over communicators and point-to-point.
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

// A rank waits in `call` for others.
struct Wait {
  const Call* call = nullptr;
  Member member;
  std::set<size_t> for_ranks;  // indices of Job::ranks
};

class WaitGraph {
 public:
  explicit WaitGraph(const Job& job) : job_(job) {
    for (const Communicator& communicator : job.communicators) {
      if (!communicator.IsWhole()) continue;
      AddCollectives(communicator);
      AddTransfers(communicator);
    }
  }

  // The members of a cycle, each waiting for the next one; empty: there is none.
  std::vector<size_t> FindCycle() const {
    std::set<size_t> done;
    for (const auto& [rank, wait] : waits_) {
      std::vector<size_t> path;
      std::vector<size_t> cycle;
      if (Walk(rank, path, done, cycle)) return cycle;
    }
    return {};
  }

  const Wait& WaitOf(size_t rank) const { return waits_.at(rank); }

 private:
  // A rank has one wait: the first call that it does not come out of.
  Wait* Take(const Member& member, const Call& call) {
    const RankSummary& rank = job_.RankOf(member);
    const bool lives = rank.end.kind != EndKind::kExit && rank.end.kind != EndKind::kSignal;
    if (call.Is(kDone) || rank.is_partial || !lives) return nullptr;
    if (!WaitedLong(job_, rank, job_.CommOf(member), call)) return nullptr;
    Wait& wait = waits_[member.rank];
    if (wait.call != nullptr && wait.call != &call && wait.call->time_ns <= call.time_ns)
      return nullptr;
    if (wait.call != &call) wait = {&call, member, {}};
    return &wait;
  }

  void AddCollectives(const Communicator& communicator) {
    for (const Member& member : communicator.members) {
      const CallList& calls = job_.CommOf(member).collectives;
      const auto first = std::find_if(calls.begin(), calls.end(),
                                      [](const Call& call) { return !call.Is(kDone); });
      if (first == calls.end()) continue;
      const size_t index = first.index();
      std::set<size_t> absent;
      for (const Member& other : communicator.members)
        if (job_.CommOf(other).collectives.size() <= index) absent.insert(other.rank);
      if (absent.empty()) continue;
      if (Wait* wait = Take(member, *first)) wait->for_ranks = std::move(absent);
    }
  }

  void AddTransfers(const Communicator& communicator) {
    for (const Member& member : communicator.members) {
      const CommSummary& comm = job_.CommOf(member);
      std::map<std::tuple<Operation, int64_t, int64_t>, size_t> counts;
      for (const Transfer& transfer : comm.transfers) {
        const Operation operation = job_.signatures[transfer.signature].operation;
        const size_t index = counts[{operation, transfer.peer, transfer.tag}]++;
        if (transfer.Is(kDone) || operation == Operation::kRecvAnySource) continue;
        const auto peer = std::find_if(
            communicator.members.begin(), communicator.members.end(), [&](const Member& other) {
              return static_cast<int64_t>(job_.CommOf(other).rank) == transfer.peer;
            });
        if (peer == communicator.members.end()) continue;
        const Operation answer =
            operation == Operation::kSend ? Operation::kRecv : Operation::kSend;
        if (CountOf(job_.CommOf(*peer), answer, comm.rank, transfer.tag) > index) continue;
        if (Wait* wait = Take(member, transfer)) wait->for_ranks.insert(peer->rank);
      }
    }
  }

  size_t CountOf(const CommSummary& comm, Operation operation, int64_t peer, int64_t tag) const {
    return static_cast<size_t>(
        std::count_if(comm.transfers.begin(), comm.transfers.end(), [&](const Transfer& transfer) {
          const Operation its = job_.signatures[transfer.signature].operation;
          if (its == Operation::kRecvAnySource) return operation == Operation::kRecv;
          return its == operation && transfer.peer == peer && transfer.tag == tag;
        }));
  }

  bool Walk(size_t rank, std::vector<size_t>& path, std::set<size_t>& done,
            std::vector<size_t>& cycle) const {
    const auto on_path = std::find(path.begin(), path.end(), rank);
    if (on_path != path.end()) {
      cycle.assign(on_path, path.end());
      return true;
    }
    const auto wait = waits_.find(rank);
    if (wait == waits_.end() || done.count(rank) != 0) return false;
    path.push_back(rank);
    for (const size_t next : wait->second.for_ranks)
      if (Walk(next, path, done, cycle)) return true;
    path.pop_back();
    done.insert(rank);
    return false;
  }

  const Job& job_;
  std::map<size_t, Wait> waits_;
};

}  // namespace

void MatchWaits(const Job& job, Found& found) {
  const WaitGraph graph(job);
  const std::vector<size_t> cycle = graph.FindCycle();
  if (cycle.empty()) return;
  Finding finding;
  finding.kind = Kind::kCycle;
  std::string text;
  for (size_t i = 0; i < cycle.size(); ++i) {
    const Wait& wait = graph.WaitOf(cycle[i]);
    const uint32_t next = job.ranks[cycle[(i + 1) % cycle.size()]].rank;
    Side side = SideOf(job, wait.member, *wait.call);
    side.what = fmt::format("{} of comm {}", side.what, *side.comm);
    constexpr size_t kShown = 4;
    if (i < kShown)
      text += fmt::format("{}rank {} is in {}{} and waits for rank {}", i == 0 ? "" : ", ",
                          side.ranks.front(), side.what, job.AtSite(wait.call->site), next);
    if (i == kShown) text += fmt::format(", and {} more", cycle.size() - kShown);
    finding.blamed.push_back(side.ranks.front());
    // It stands since the last of them came; what happened first is where it begins.
    if (finding.time_ns == 0 || wait.call->time_ns < finding.time_ns) {
      finding.time_ns = wait.call->time_ns;
      finding.step = wait.call->step;
    }
    if (i < kShown) finding.next.push_back(ShowCommand(side));
    finding.sides.push_back(std::move(side));
  }
  std::sort(finding.blamed.begin(), finding.blamed.end());
  finding.sentence = fmt::format("{} wait for each other: {}", RanksText(finding.blamed), text);
  for (const RankSummary& rank : job.ranks)
    if (HasWaited(rank) &&
        !std::binary_search(finding.blamed.begin(), finding.blamed.end(), rank.rank))
      finding.waiting.push_back(rank.rank);
  found.findings.push_back(std::move(finding));
}

}  // namespace deja::check
