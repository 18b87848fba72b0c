// store: the rendezvous: an address that is taken, keys that nobody sets.
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "check/findings/matchers.h"
#include "check/matching/standing.h"

namespace deja::check {
namespace {

constexpr uint64_t kLongForAKey = 1'000'000'000;

std::string_view PortOf(std::string_view address) {
  return address.substr(std::min(address.rfind(':') + 1, address.size()));
}

// The rank could not take an address, took no other one of that port, and ended for it.
const SocketSeen* FailedBind(const RankSummary& rank) {
  if (!rank.end.Badly()) return nullptr;
  const SocketSeen* failed = nullptr;
  for (const SocketSeen& socket : rank.seen.sockets) {
    if (!socket.is_bind) continue;
    if (socket.error == EADDRINUSE) failed = &socket;
    if (socket.error == 0 && failed != nullptr && PortOf(socket.local) == PortOf(failed->local))
      failed = nullptr;
  }
  return failed;
}

const OpenCall* StoreWait(const Job& job, const RankSummary& rank) {
  for (const OpenCall& call : rank.open)
    if (call.name.rfind("store_", 0) == 0 && job.last_time_ns >= call.time_ns + kLongForAKey)
      return &call;
  return nullptr;
}

bool HasConnected(const RankSummary& rank, std::string_view port) {
  return std::any_of(rank.seen.sockets.begin(), rank.seen.sockets.end(),
                     [&](const SocketSeen& socket) {
                       return !socket.is_bind && PortOf(socket.remote) == port;
                     });
}

void OnTaken(const Job& job, size_t index, const SocketSeen& socket, Found& found) {
  const RankSummary& rank = job.ranks[index];
  const std::string_view port = PortOf(socket.local);
  Finding finding;
  finding.kind = Kind::kStore;
  finding.blamed = {rank.rank};
  finding.time_ns = socket.time_ns;
  finding.sides = {StandingOf(job, index)};
  std::string others;
  for (const RankSummary& other : job.ranks)
    if (other.rank != rank.rank && HasConnected(other, port)) finding.waiting.push_back(other.rank);
  if (!finding.waiting.empty())
    others = fmt::format("; {} connected to who has it", RanksText(finding.waiting));
  finding.sentence = fmt::format(
      "rank {} could not listen at {}: the address is taken by another process (EADDRINUSE){}",
      rank.rank, socket.local, others);
  for (size_t i = 0; i < job.ranks.size() && finding.sides.size() < 3; ++i) {
    const OpenCall* wait = StoreWait(job, job.ranks[i]);
    if (wait == nullptr) continue;
    Side side;
    side.ranks = {job.ranks[i].rank};
    side.what = "waits in " + wait->name;
    side.site = job.sites[wait->site];
    finding.sides.push_back(std::move(side));
  }
  finding.next = {fmt::format("show RUN --rank {} --last 20 --stacks", rank.rank)};
  found.findings.push_back(std::move(finding));
}

// Ranks that wait for a key, and nothing else is known to be wrong.
void OnKeys(const Job& job, Found& found) {
  std::vector<size_t> waiters;
  for (size_t i = 0; i < job.ranks.size(); ++i)
    if (StoreWait(job, job.ranks[i]) != nullptr) waiters.push_back(i);
  if (waiters.empty() || !found.findings.empty()) return;
  const OpenCall& first = *StoreWait(job, job.ranks[waiters.front()]);
  Finding finding;
  finding.kind = Kind::kStore;
  finding.time_ns = first.time_ns;
  for (size_t i = 0; i < job.ranks.size(); ++i) {
    const bool waits = std::find(waiters.begin(), waiters.end(), i) != waiters.end();
    (waits ? finding.waiting : finding.blamed).push_back(job.ranks[i].rank);
    if (!waits && finding.sides.empty()) finding.sides.push_back(StandingOf(job, i));
  }
  if (finding.blamed.empty()) std::swap(finding.blamed, finding.waiting);
  Side side;
  side.ranks = finding.waiting.empty() ? finding.blamed : finding.waiting;
  side.what = "waits in " + first.name;
  side.site = job.sites[first.site];
  finding.sentence = fmt::format("{} {} for a key of the store that no rank has set: {}{}",
                                 RanksText(side.ranks), side.ranks.size() == 1 ? "waits" : "wait",
                                 first.name, job.AtSite(first.site));
  finding.sides.push_back(std::move(side));
  finding.next = {fmt::format("show RUN --rank {} --last 20 --stacks",
                              job.ranks[waiters.front()].rank)};
  found.findings.push_back(std::move(finding));
}

}  // namespace

void MatchStores(const Job& job, Found& found) {
  for (size_t i = 0; i < job.ranks.size(); ++i)
    if (const SocketSeen* socket = FailedBind(job.ranks[i]))
      return OnTaken(job, i, *socket, found);
  OnKeys(job, found);
}

}  // namespace deja::check
