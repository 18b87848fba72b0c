#include "check/matching/standing.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace deja::check {
namespace {

constexpr uint64_t kLeastWait = 1'000'000'000;
constexpr uint64_t kTimesLonger = 3;

// The last call on any communicator that has failed or is not done.
struct Last {
  const CommSummary* comm = nullptr;
  const Call* call = nullptr;
};

void TakeLater(const CommSummary& comm, const Call& call, Last& last) {
  if (last.call == nullptr || call.time_ns >= last.call->time_ns) last = {&comm, &call};
}

Last LastCall(const RankSummary& rank, bool only_waiting) {
  Last last;
  for (const CommSummary& comm : rank.comms) {
    // Those that wait are among the last ones: an earlier one that failed was survived.
    constexpr size_t kLast = 16;
    const auto take = [&](const auto& calls) {
      const size_t from = calls.size() - std::min(calls.size(), kLast);
      for (size_t i = from; i < calls.size(); ++i)
        if (!only_waiting || WaitsIn(calls[i])) TakeLater(comm, calls[i], last);
    };
    take(comm.collectives);
    take(comm.transfers);
  }
  return last;
}

}  // namespace

bool WaitsIn(const Call& call) {
  return !call.Is(kDone) || call.Is(kFailed);
}

bool HasWaited(const RankSummary& rank) {
  return LastCall(rank, true).call != nullptr;
}

bool EndedOnItsOwn(const RankSummary& rank) {
  const Last last = LastCall(rank, true);
  // One that is under way when another thread crashes is not why the process ended.
  return rank.end.Badly() && (last.call == nullptr || !last.call->Is(kFailed));
}

Side StandingOf(const Job& job, size_t index) {
  const RankSummary& rank = job.ranks[index];
  Side side;
  side.ranks = {rank.rank};
  const Last waiting = LastCall(rank, true);
  const Last last = waiting.call != nullptr ? waiting : LastCall(rank, false);
  std::string where;
  if (last.call != nullptr) {
    const std::string call = fmt::format("{} #{} of comm {}", job.SignatureText(*last.call),
                                         last.call->seq, last.comm->number);
    side.comm = last.comm->number;
    side.seq = last.call->seq;
    side.site = job.sites[last.call->site];
    if (waiting.call != nullptr && last.call->Is(kFailed))
      where = call + " failed";
    else if (waiting.call != nullptr)
      where = "in " + call;
    else
      where = "its last was " + call;
  } else {
    where = "made no operation";
  }
  const auto open = std::find_if(rank.open.rbegin(), rank.open.rend(),
                                 [](const OpenCall& call) { return !call.comm || call.seq == 0; });
  if (waiting.call == nullptr && open != rank.open.rend()) {
    where = fmt::format("in {} (entered, never left), {}", open->name, where);
    if (open->site != kNoSite) side.site = job.sites[open->site];
  }
  // Where a signal found the program says more than what it called last.
  const bool crashed = rank.end.kind == EndKind::kSignal;
  if ((waiting.call == nullptr || crashed) && rank.end.site != kNoSite)
    side.site = job.sites[rank.end.site];
  side.what = fmt::format("{}; {}", where, rank.end.Describe());
  return side;
}

bool WaitedLong(const Job& job, const RankSummary& rank, const CommSummary& comm,
                const Call& call) {
  if (call.Is(kFailed)) return true;
  const uint64_t end = std::max(job.last_time_ns, rank.last_time_ns);
  const uint64_t waited = end > call.time_ns ? end - call.time_ns : 0;
  uint64_t longest = 0;
  const CallList& calls = comm.collectives;
  for (size_t i = calls.OwnFrom() + 1; i < calls.size() && &calls[i] != &call; ++i)
    if (calls[i].time_ns > calls[i - 1].time_ns)
      longest = std::max(longest, calls[i].time_ns - calls[i - 1].time_ns);
  return waited >= kLeastWait && waited / kTimesLonger >= longest;
}

Side SideOf(const Job& job, const Member& member, const Call& call) {
  Side side;
  side.ranks = {job.NumberOf(member)};
  side.what = fmt::format("{} #{}", job.SignatureText(call), call.seq);
  side.site = job.sites[call.site];
  side.comm = job.CommOf(member).number;
  side.seq = call.seq;
  return side;
}

std::string ShowCommand(const Side& side) {
  if (side.ranks.empty()) return "";
  if (!side.comm) return fmt::format("show RUN --rank {} --last 20 --stacks", side.ranks.front());
  const uint64_t from = side.seq > 2 ? side.seq - 2 : 1;
  return fmt::format("show RUN --rank {} --comm {} --seq {}-{} --stacks", side.ranks.front(),
                     *side.comm, from, side.seq);
}

std::string ReplayCommand(uint32_t rank) {
  return fmt::format("replay RUN --rank {} --gdb", rank);
}

std::string ReplayCommand(const RankSummary& rank) {
  if (rank.end.exception.empty()) return ReplayCommand(rank.rank);
  return fmt::format("replay RUN --rank {} --pdb", rank.rank);
}

}  // namespace deja::check
