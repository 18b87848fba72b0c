// Summaries of ranks for tests of the matchers, made call by call. A value; one thread.
#ifndef DEJA_TESTS_UNIT_CHECK_MADE_JOB_H_
#define DEJA_TESTS_UNIT_CHECK_MADE_JOB_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <string>
#include <utility>
#include <vector>

#include "check/check.h"

namespace deja::check {

constexpr uint64_t kSecond = 1'000'000'000;

inline Signature AllReduce(uint64_t count) {
  Signature signature;
  signature.operation = Operation::kAllReduce;
  signature.dtype = 7;
  signature.count = count;
  signature.redop = 0;
  return signature;
}
inline Signature Of(Operation operation, uint64_t count, int64_t root = Signature::kNone) {
  Signature signature;
  signature.operation = operation;
  signature.dtype = 7;
  signature.count = count;
  signature.root = root;
  return signature;
}
inline Signature Barrier() {
  return Signature{};
}

struct With {
  uint64_t input = 0;
  uint64_t output = 0;
  uint8_t flags = kDone;
  uint32_t thread = 0;
};

class MadeJob {
 public:
  // A communicator of all of them.
  explicit MadeJob(uint32_t nranks) : ranks_(nranks), steps_(nranks, kNoStep) {
    for (uint32_t r = 0; r < nranks; ++r) {
      ranks_[r].rank = r;
      ranks_[r].world_size = nranks;
      ranks_[r].has_digests = true;
      ranks_[r].end.kind = EndKind::kExit;
    }
    std::vector<uint32_t> all(nranks);
    for (uint32_t r = 0; r < nranks; ++r) all[r] = r;
    AddComm(0xa11, all);
  }

  void AddComm(uint64_t hash, const std::vector<uint32_t>& members) {
    for (size_t i = 0; i < members.size(); ++i) {
      RankSummary& rank = ranks_[members[i]];
      CommSummary comm;
      comm.number = static_cast<uint32_t>(rank.comms.size());
      comm.hash = hash;
      comm.rank = static_cast<uint32_t>(i);
      comm.nranks = static_cast<uint32_t>(members.size());
      rank.comms.push_back(comm);
    }
  }

  void Step(uint32_t rank, uint64_t step) {
    steps_[rank] = step;
    ranks_[rank].last_step = step;
  }
  // All that follows happens later.
  void Wait(uint64_t ns) { now_ += ns; }

  Call& Do(uint32_t rank, const Signature& signature, const std::string& file, int line,
           const With& with = {}, size_t comm = 0) {
    CommSummary& its = ranks_[rank].comms[comm];
    its.collectives.Own().push_back(Make<Call>(rank, its, signature, file, line, with));
    return its.collectives.Own().back();
  }
  void All(const Signature& signature, const std::string& file, int line, const With& with = {}) {
    for (uint32_t rank = 0; rank < ranks_.size(); ++rank) Do(rank, signature, file, line, with);
  }
  Transfer& Send(uint32_t rank, int64_t peer, uint64_t count, const With& with = {}) {
    return Move(rank, Operation::kSend, peer, count, with);
  }
  Transfer& Receive(uint32_t rank, int64_t peer, uint64_t count, const With& with = {}) {
    return Move(rank, Operation::kRecv, peer, count, with);
  }

  void EndBy(uint32_t rank, EndKind kind, int code, int signal = 0) {
    EndState& end = ranks_[rank].end;
    end.kind = kind;
    end.code = code;
    end.signal = signal;
    end.time_ns = ranks_[rank].last_time_ns = ++now_;
  }
  // As the launcher of a job that hangs does.
  void KillAll() {
    for (uint32_t rank = 0; rank < ranks_.size(); ++rank) EndBy(rank, EndKind::kEnded, 0, SIGTERM);
  }

  RankSummary& operator[](uint32_t rank) { return ranks_[rank]; }
  Report Checked() const { return Check(Job(ranks_)); }
  Job Made() const { return Job(ranks_); }

 private:
  template <typename T>
  T Make(uint32_t rank, CommSummary& comm, const Signature& signature, const std::string& file,
         int line, const With& with) {
    RankSummary& its = ranks_[rank];
    T call;
    const auto known = std::find(its.signatures.begin(), its.signatures.end(), signature);
    call.signature = static_cast<uint32_t>(known - its.signatures.begin());
    if (known == its.signatures.end()) its.signatures.push_back(signature);
    const Site site = {{file, line, "f"}};
    const auto place = std::find(its.sites.begin(), its.sites.end(), site);
    call.site = static_cast<uint32_t>(place - its.sites.begin());
    if (place == its.sites.end()) its.sites.push_back(site);
    call.seq = comm.collectives.size() + comm.transfers.size() + 1;
    call.step = steps_[rank];
    call.time_ns = its.last_time_ns = its.end.time_ns = ++now_;
    call.input = with.input;
    call.output = with.output;
    call.flags = with.flags;
    call.thread = with.thread;
    return call;
  }
  Transfer& Move(uint32_t rank, Operation operation, int64_t peer, uint64_t count,
                 const With& with) {
    CommSummary& its = ranks_[rank].comms[0];
    Transfer transfer = Make<Transfer>(rank, its, check::Of(operation, count), "p2p.py", 9, with);
    transfer.peer = peer;
    its.transfers.push_back(transfer);
    return its.transfers.back();
  }

  std::vector<RankSummary> ranks_;
  std::vector<uint64_t> steps_;
  uint64_t now_ = 1000 * kSecond;
};

using Ranks = std::vector<uint32_t>;

inline const Finding& Only(const Report& report) {
  static const Finding none;
  EXPECT_EQ(report.findings.size(), 1u);
  for (const Finding& finding : report.findings)
    if (report.findings.size() != 1)
      ADD_FAILURE() << NameOf(finding.kind) << ": " << finding.sentence;
  return report.findings.empty() ? none : report.findings.front();
}

}  // namespace deja::check

#endif  // DEJA_TESTS_UNIT_CHECK_MADE_JOB_H_
