#include "cli/summaries/culprit.h"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <map>

#include "cli/events/comm_names.h"
#include "cli/summaries/job_summary.h"

namespace deja::cli {
namespace {

// A longer recording is not searched for a NaN: this is a hint.
constexpr uint64_t kMostSearched = 2'000'000;  // events of all ranks

bool IsOwnFault(int signal) {
  constexpr int kFaults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGSYS, SIGTRAP};
  return std::find(std::begin(kFaults), std::end(kFaults), signal) != std::end(kFaults);
}

// Ended by a signal that the rank itself gave cause for, or that the kernel sent it for its memory.
bool HasCrashed(const RankSummary& summary) {
  const bool survived = summary.exit && (!summary.fate.known || summary.fate.signal == 0);
  if (survived) return false;
  if (summary.crash && IsOwnFault(summary.crash->signal)) return !summary.EndedWell();
  if (!summary.fate.known) return false;
  return IsOwnFault(static_cast<int>(summary.fate.signal)) ||
         (summary.fate.signal == SIGKILL && summary.oom_kills != 0);
}

// By what the launcher, or the user, ends all ranks with.
bool WasEndedFromOutside(const RankSummary& summary) {
  const int signal = summary.crash ? summary.crash->signal
                                   : static_cast<int>(summary.fate.known ? summary.fate.signal : 0);
  return signal == SIGTERM || signal == SIGINT || signal == SIGHUP || signal == SIGKILL;
}

// The rank that ended first, among those that `is_one` takes.
template <typename Predicate>
const SuspectRank* First(const std::vector<SuspectRank>& ranks, Predicate is_one) {
  const SuspectRank* first = nullptr;
  for (const SuspectRank& rank : ranks)
    if (is_one(*rank.summary) &&
        (first == nullptr || rank.summary->last_time_ns < first->summary->last_time_ns))
      first = &rank;
  return first;
}

struct NanOperation {
  std::string call;
  uint64_t comm = 0;  // CommNames
  uint64_t seq = 0;
  uint64_t time_ns = 0;
};

// The first operation that the rank gave a NaN.
std::optional<NanOperation> FirstNan(const SuspectRank& rank, const CommNames& names) {
  const auto cursor = rank.reader->Events();
  const auto has_nan = [](const format::Tensor& tensor) { return tensor.stats.nan_count != 0; };
  while (const format::Event* event =
             cursor->NextOf(format::KindBit(format::EventKind::kCallEnter))) {
    const auto* enter = event->As<format::CallEnter>();
    if (enter->comm_seq == 0 || std::none_of(enter->inputs.begin(), enter->inputs.end(), has_nan))
      continue;
    const auto comm = rank.summary->comms.find(enter->comm - 1);
    if (comm == rank.summary->comms.end()) continue;
    return NanOperation{rank.summary->ApiName(enter->api), names.Of(comm->second.hash),
                        enter->comm_seq, event->time_ns};
  }
  return std::nullopt;
}

// Ranks of one communicator are compared by their operations, others by time.
bool IsBefore(const NanOperation& a, const NanOperation& b) {
  return a.comm == b.comm ? a.seq < b.seq : a.time_ns < b.time_ns;
}

std::optional<Culprit> FindNan(const std::vector<SuspectRank>& ranks) {
  uint64_t events = 0;
  CommNames names;
  for (const SuspectRank& rank : ranks) {
    events += rank.reader->totals().events;
    for (const auto& [number, comm] : rank.summary->comms) names.Add(comm.hash, comm.joined_as);
  }
  if (events > kMostSearched) return std::nullopt;
  std::optional<NanOperation> first;
  Culprit culprit;
  for (const SuspectRank& rank : ranks) {
    const auto found = FirstNan(rank, names);
    if (!found || (first && !IsBefore(*found, *first))) continue;
    first = found;
    culprit = {rank.rank,
               fmt::format("the first to pass a NaN, to {} #{}", found->call, found->seq)};
  }
  return first ? std::optional(culprit) : std::nullopt;
}

// A rank that others wait for.
std::optional<Culprit> FindAbsent(const std::vector<SuspectRank>& ranks, Symbolizer& symbolizer) {
  std::vector<RankOfJob> job;
  job.reserve(ranks.size());
  for (const SuspectRank& rank : ranks) job.push_back({rank.rank, rank.summary});
  for (const CommStanding& comm : UnevenComms(job, symbolizer)) {
    const bool is_waited_in = std::any_of(
        comm.ranks.begin(), comm.ranks.end(),
        [&](const Standing& one) { return one.inside && one.last_seq == comm.last_seq; });
    if (!is_waited_in) continue;
    for (const Standing& one : comm.ranks)
      if (one.last_seq < comm.last_seq && !one.inside)
        return Culprit{one.rank,
                       fmt::format("it never reached {} #{}", comm.last_call, comm.last_seq)};
  }
  return std::nullopt;
}

std::optional<Culprit> FindRank(const std::vector<SuspectRank>& ranks, Symbolizer& symbolizer) {
  const auto failed = [](const RankSummary& summary) { return !summary.EndedWell(); };
  if (First(ranks, failed) == nullptr) return std::nullopt;
  if (const SuspectRank* crashed = First(ranks, HasCrashed))
    return Culprit{crashed->rank, "it crashed first"};
  if (auto nan = FindNan(ranks)) return nan;
  if (auto absent = FindAbsent(ranks, symbolizer)) return absent;
  if (const SuspectRank* first = First(ranks, [&](const RankSummary& summary) {
        return failed(summary) && !WasEndedFromOutside(summary);
      }))
    return Culprit{first->rank, "it failed first"};
  return Culprit{First(ranks, failed)->rank, "it ended first"};
}

}  // namespace

std::optional<Culprit> FindCulprit(const std::vector<SuspectRank>& ranks, Symbolizer& symbolizer) {
  std::optional<Culprit> culprit = FindRank(ranks, symbolizer);
  if (culprit)
    culprit->has_exception = std::any_of(ranks.begin(), ranks.end(), [&](const SuspectRank& one) {
      return one.rank == culprit->rank && !one.summary->exception.empty();
    });
  return culprit;
}

}  // namespace deja::cli
