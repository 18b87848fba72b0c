// Trimmer: gathers summaries, and keeps the calls of long communicators once for all ranks. So a
// check of very many ranks takes memory for a few calls of each.
//
// The first rank of a communicator is what the others are compared with. Calls that all have made
// like it (operation, place, names, results; no NaN, no failure) are left out, but for those in
// front of the first difference. What is not left out is shared (check/evidence/call_list.h). One
// thread.
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
  static constexpr size_t kAll = SIZE_MAX;

  // `own`: how many of a rank's last calls keep their own times. kAll: those of the window, and all
  // from its first difference on.
  explicit Trimmer(size_t window = kWindow, size_t own = kAll) : window_(window), own_(own) {}

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
  };
  struct Group {
    std::vector<Member> members;
    std::vector<Place> sources;  // whose calls others share; the first member's is the first
  };

  size_t CountSame(const Place& first, const Place& place);
  void Share(Group& group, const Member& member);
  bool ShareWith(const Place& source, const Place& place, size_t size);
  CommSummary& CommAt(const Place& place) { return ranks_[place.rank].comms[place.comm]; }

  size_t window_;
  size_t own_;
  std::vector<RankSummary> ranks_;
  std::map<Key, Group> groups_;
};

}  // namespace deja::check

#endif  // DEJA_CHECK_EVIDENCE_TRIM_H_
