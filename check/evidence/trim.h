// Trimmer: gathers summaries and keeps of long communicators only where ranks differ, so that a
// check of very many ranks takes memory for a few calls of each.
//
// The first rank of a communicator is what the others are compared with. What a rank has made like
// it (operation, place, names, results; no NaN, no failure) is left out, but for the calls in front
// of the first difference. One thread.
#ifndef DEJA_CHECK_EVIDENCE_TRIM_H_
#define DEJA_CHECK_EVIDENCE_TRIM_H_

#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

#include "check/evidence/summary.h"

namespace deja::check {

class Trimmer {
 public:
  // Calls of a communicator that are kept in any case.
  static constexpr size_t kWindow = 4096;

  explicit Trimmer(size_t window = kWindow) : window_(window) {}

  void Take(RankSummary summary);
  // All that were taken. Members of a communicator have left out the same calls.
  std::vector<RankSummary> Finish();

 private:
  // Hash, size and which one of those with that hash it is to the rank.
  using Key = std::tuple<uint64_t, uint32_t, uint32_t>;
  struct Place {
    size_t rank = 0;  // index of ranks_
    size_t comm = 0;
  };
  struct Member {
    Place place;
    size_t same = 0;  // calls that are those of the first member
    size_t left_out = 0;
  };
  struct Group {
    std::vector<Member> members;  // the first one has all its calls
  };

  void Compare(const Group& group, Member& member);
  CommSummary& CommAt(const Place& place) { return ranks_[place.rank].comms[place.comm]; }

  size_t window_;
  std::vector<RankSummary> ranks_;
  std::map<Key, Group> groups_;
};

}  // namespace deja::check

#endif  // DEJA_CHECK_EVIDENCE_TRIM_H_
