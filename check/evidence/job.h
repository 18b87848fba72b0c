// Job: the summaries of all ranks, put together: which communicators of theirs are the same one.
//
// Numbers of signatures and sites are the job's from here on. Owns the summaries; const once it is
// made; any thread.
#ifndef DEJA_CHECK_EVIDENCE_JOB_H_
#define DEJA_CHECK_EVIDENCE_JOB_H_

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "check/evidence/summary.h"

namespace deja::check {

// A rank's end of a communicator.
struct Member {
  size_t rank = 0;  // index of Job::ranks
  size_t comm = 0;  // index of its comms
};

struct Communicator {
  uint32_t nranks = 0;
  std::string name;             // as torch names it; may be empty
  std::vector<Member> members;  // by their rank in the communicator
  // Two ranks of the job claim one place in it: it is several, and which rank is in which of them
  // is not recorded.
  bool is_ambiguous = false;

  [[nodiscard]] bool IsWhole() const { return !is_ambiguous && members.size() == nranks; }
};

class Job {
 public:
  explicit Job(std::vector<RankSummary> summaries);

  std::vector<RankSummary> ranks;  // by rank
  std::vector<Communicator> communicators;
  std::vector<Signature> signatures;
  std::vector<Site> sites;
  std::vector<std::string> names;  // Call::names is an index of it
  uint64_t last_time_ns = 0;       // of the last event of any rank

  [[nodiscard]] const RankSummary& RankOf(const Member& member) const { return ranks[member.rank]; }
  [[nodiscard]] const CommSummary& CommOf(const Member& member) const {
    return ranks[member.rank].comms[member.comm];
  }
  [[nodiscard]] uint32_t NumberOf(const Member& member) const { return ranks[member.rank].rank; }
  // "comm 0", or for a part of the job "comm 1 of ranks 0,3".
  [[nodiscard]] std::string NameOf(const Communicator& communicator) const;
  // The ranks of the job that are in it, ascending.
  [[nodiscard]] std::vector<uint32_t> RanksOf(const Communicator& communicator) const;
  // "AllReduce float32[8] sum"
  [[nodiscard]] std::string SignatureText(const Call& call) const {
    return Describe(signatures[call.signature]);
  }
  // The calls were made by one line of the program, whoever called that. Unknown places are one.
  [[nodiscard]] bool IsSameLine(uint32_t site, uint32_t other) const;
  // " at train.py:8 in step"; empty if it is not known.
  [[nodiscard]] std::string AtSite(uint32_t site) const;

 private:
  void TakeNumbers();
  void FindCommunicators();
};

// "0-3,7" of ascending numbers.
std::string RangesText(std::span<const uint32_t> ranks);
// "rank 2", "ranks 0-3,7"
std::string RanksText(std::span<const uint32_t> ranks);

}  // namespace deja::check

#endif  // DEJA_CHECK_EVIDENCE_JOB_H_
