#include "check/timeline/timeline.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

namespace deja::check {
namespace {

Part PartOf(const Job& job, const Member& member, const Call& call) {
  const RankSummary& rank = job.RankOf(member);
  Part part{member.rank, job.CommOf(member).number, &call, call.time_ns, call.time_ns, false};
  part.is_open = !call.Is(kDone);
  if (part.is_open)
    part.end_ns = std::max(call.time_ns, rank.last_time_ns);
  else
    part.end_ns += uint64_t{1000} * call.lasted_us;
  return part;
}

class Joiner {
 public:
  explicit Joiner(const Job& job) : job_(job) {}

  std::vector<JoinedOperation> Join() {
    for (size_t c = 0; c < job_.communicators.size(); ++c) {
      // Which rank is in which of several is not known, so each call stands alone.
      if (job_.communicators[c].is_ambiguous) {
        for (const Member& member : job_.communicators[c].members) JoinMembers(c, {member});
      } else {
        JoinMembers(c, job_.communicators[c].members);
      }
    }
    for (JoinedOperation& one : operations_) Finish(one);
    std::sort(operations_.begin(), operations_.end(),
              [](const JoinedOperation& a, const JoinedOperation& b) {
                return std::tie(a.begin_ns, a.communicator, a.is_transfer, a.number) <
                       std::tie(b.begin_ns, b.communicator, b.is_transfer, b.number);
              });
    return std::move(operations_);
  }

 private:
  // Sender and receiver in a communicator.
  using Pair = std::pair<int64_t, int64_t>;

  void JoinMembers(size_t communicator, const std::vector<Member>& members) {
    size_t most = 0;
    for (const Member& member : members)
      most = std::max(most, job_.CommOf(member).collectives.size());
    for (size_t i = 0; i < most; ++i) {
      JoinedOperation one;
      one.communicator = communicator;
      for (const Member& member : members) {
        const CommSummary& comm = job_.CommOf(member);
        if (i >= comm.collectives.size()) continue;
        one.number = comm.left_out + i + 1;
        one.parts.push_back(PartOf(job_, member, comm.collectives[i]));
      }
      operations_.push_back(std::move(one));
    }
    JoinTransfers(communicator, members);
  }

  void JoinTransfers(size_t communicator, const std::vector<Member>& members) {
    std::map<Pair, std::vector<JoinedOperation>> pairs;
    const auto take = [&](const Member& member, bool sends) {
      std::map<Pair, size_t> counts;
      const CommSummary& comm = job_.CommOf(member);
      for (const Transfer& transfer : comm.transfers) {
        if ((job_.signatures[transfer.signature].operation == Operation::kSend) != sends) continue;
        const auto own = static_cast<int64_t>(comm.rank);
        const Pair pair = sends ? Pair{own, transfer.peer} : Pair{transfer.peer, own};
        const size_t index = counts[pair]++;
        std::vector<JoinedOperation>& of_pair = pairs[pair];
        if (of_pair.size() <= index) of_pair.resize(index + 1);
        of_pair[index].parts.push_back(PartOf(job_, member, transfer));
        of_pair[index].number = index + 1;
      }
    };
    for (const bool sends : {true, false})
      for (const Member& member : members) take(member, sends);
    for (auto& [pair, of_pair] : pairs) {
      for (JoinedOperation& one : of_pair) {
        one.communicator = communicator;
        one.is_transfer = true;
        operations_.push_back(std::move(one));
      }
    }
  }

  void Finish(JoinedOperation& one) const {
    one.begin_ns = one.parts.front().begin_ns;
    const Signature& first = job_.signatures[one.parts.front().call->signature];
    for (const Part& part : one.parts) {
      one.begin_ns = std::min(one.begin_ns, part.begin_ns);
      one.met_ns = std::max(one.met_ns, part.begin_ns);
      one.end_ns = std::max(one.end_ns, part.end_ns);
      if (!one.is_transfer && !Fit(first, job_.signatures[part.call->signature]))
        one.agrees = false;
    }
  }

  const Job& job_;
  std::vector<JoinedOperation> operations_;
};

}  // namespace

size_t JoinedOperation::Last() const {
  const auto last = std::max_element(parts.begin(), parts.end(), [](const Part& a, const Part& b) {
    return a.begin_ns < b.begin_ns;
  });
  return static_cast<size_t>(last - parts.begin());
}

std::vector<JoinedOperation> JoinOperations(const Job& job) {
  return Joiner(job).Join();
}

std::vector<RankWaits> WaitsOf(const Job& job, const std::vector<JoinedOperation>& operations) {
  std::vector<RankWaits> waits(job.ranks.size());
  for (const JoinedOperation& one : operations) {
    const Operation operation = job.signatures[one.parts.front().call->signature].operation;
    const bool waits_for_all = !one.is_transfer && one.agrees && one.parts.size() > 1 &&
                               one.parts.size() == job.communicators[one.communicator].nranks &&
                               WaitsForAll(operation);
    uint64_t second = 0;  // the last begin but one
    const size_t last = one.Last();
    for (size_t i = 0; i < one.parts.size(); ++i) {
      const Part& part = one.parts[i];
      RankWaits& its = waits[part.rank];
      ++its.operations;
      its.inside_ns += part.end_ns - part.begin_ns;
      if (!waits_for_all) continue;
      its.waited_ns += std::min(one.met_ns, part.end_ns) - part.begin_ns;
      if (i != last) second = std::max(second, part.begin_ns);
    }
    if (!waits_for_all) continue;
    waits[one.parts[last].rank].kept_ns += one.met_ns - second;
    ++waits[one.parts[last].rank].times_last;
  }
  return waits;
}

}  // namespace deja::check
