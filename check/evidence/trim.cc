#include "check/evidence/trim.h"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace deja::check {
namespace {

constexpr uint8_t kNotable = kFailed | kNanIn | kNanOut | kInfIn | kInfOut | kRepeated;

// Numbers of one summary in another one's terms; of each first use.
template <typename T>
class Translation {
 public:
  Translation(const std::vector<T>& from, std::vector<T>& to) : from_(from), to_(to) {
    known_.resize(from.size(), kUnknown);
  }
  // The other's number of what has `number` here; a new one if it has none.
  uint32_t operator()(uint32_t number) {
    uint32_t& known = known_[number];
    if (known != kUnknown) return known;
    const auto it = std::find(to_.begin(), to_.end(), from_[number]);
    known = static_cast<uint32_t>(it - to_.begin());
    if (it == to_.end()) to_.push_back(from_[number]);
    return known;
  }

 private:
  static constexpr uint32_t kUnknown = ~0u;
  const std::vector<T>& from_;
  std::vector<T>& to_;
  std::vector<uint32_t> known_;
};

// What must be the same on all ranks once it is done; the root of a broadcast may have its input
// only.
uint64_t ResultOf(const Signature& signature, const Call& call) {
  if (!HasEqualResults(signature.operation)) return 0;
  return call.output == 0 && signature.operation == Operation::kBroadcast ? call.input
                                                                          : call.output;
}

}  // namespace

void Trimmer::Take(RankSummary summary) {
  const size_t rank = ranks_.size();
  ranks_.push_back(std::move(summary));
  RankSummary& taken = ranks_.back();
  std::map<std::tuple<uint64_t, uint32_t, uint32_t>, uint32_t> occurrences;
  for (size_t c = 0; c < taken.comms.size(); ++c) {
    CommSummary& comm = taken.comms[c];
    const uint32_t occurrence = occurrences[{comm.hash, comm.nranks, comm.rank}]++;
    if (comm.joined_as != 0 || taken.is_partial) continue;
    Group& group = groups_[{comm.hash, comm.nranks, occurrence}];
    Member member{{rank, c}, comm.collectives.size(), 0};
    if (!group.members.empty()) Compare(group, member);
    if (!group.members.empty() && member.same > window_) {
      member.left_out = member.same - window_;
      std::vector<Call>& calls = comm.collectives;
      calls = std::vector<Call>(calls.begin() + static_cast<std::ptrdiff_t>(member.left_out),
                                calls.end());
    }
    group.members.push_back(member);
  }
}

void Trimmer::Compare(const Group& group, Member& member) {
  const Place& first = group.members.front().place;
  RankSummary& reference = ranks_[first.rank];
  RankSummary& rank = ranks_[member.place.rank];
  const std::vector<Call>& a = CommAt(first).collectives;
  const std::vector<Call>& b = CommAt(member.place).collectives;
  Translation signatures(rank.signatures, reference.signatures);
  Translation sites(rank.sites, reference.sites);
  Translation names(rank.names, reference.names);
  size_t i = 0;
  for (; i < std::min(a.size(), b.size()); ++i) {
    const Signature& signature = reference.signatures[a[i].signature];
    const bool same =
        a[i].signature == signatures(b[i].signature) && a[i].site == sites(b[i].site) &&
        a[i].names == names(b[i].names) && ResultOf(signature, a[i]) == ResultOf(signature, b[i]) &&
        a[i].seq == b[i].seq && a[i].flags == b[i].flags && (b[i].flags & kNotable) == 0;
    if (!same) break;
  }
  member.same = i;
}

std::vector<RankSummary> Trimmer::Finish() {
  for (auto& [key, group] : groups_) {
    if (group.members.size() < 2) continue;
    size_t same = SIZE_MAX;
    for (const Member& member : group.members) same = std::min(same, member.same);
    const size_t left_out = same > window_ ? same - window_ : 0;
    const Place& first = group.members.front().place;
    for (size_t m = 1; m < group.members.size(); ++m) {
      const Member& member = group.members[m];
      if (member.left_out == left_out) continue;
      // What this one has left out too much is what the first one has.
      RankSummary& rank = ranks_[member.place.rank];
      Translation signatures(ranks_[first.rank].signatures, rank.signatures);
      Translation sites(ranks_[first.rank].sites, rank.sites);
      Translation names(ranks_[first.rank].names, rank.names);
      const std::vector<Call>& all = CommAt(first).collectives;
      std::vector<Call> calls(all.begin() + static_cast<std::ptrdiff_t>(left_out),
                              all.begin() + static_cast<std::ptrdiff_t>(member.left_out));
      for (Call& call : calls) {
        call.signature = signatures(call.signature);
        call.site = sites(call.site);
        call.names = names(call.names);
        call.input = 0;
      }
      std::vector<Call>& kept = CommAt(member.place).collectives;
      calls.insert(calls.end(), kept.begin(), kept.end());
      kept = std::move(calls);
    }
    std::vector<Call>& all = CommAt(first).collectives;
    all.erase(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(left_out));
    for (const Member& member : group.members) CommAt(member.place).left_out = left_out;
  }
  return std::move(ranks_);
}

}  // namespace deja::check
