#include "check/evidence/trim.h"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace deja::check {
namespace {

// Ranks that differ from all of these keep their calls to themselves.
constexpr size_t kMostSources = 16;
// A list that shares has this number of calls of its own at most, or this part of its calls.
constexpr size_t kFewExceptions = 64;

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

// Numbers of one rank in another one's terms.
struct Terms {
  Terms(const RankSummary& from, RankSummary& to)
      : signatures(from.signatures, to.signatures),
        sites(from.sites, to.sites),
        names(from.names, to.names) {}
  // `b` is a call of `from`: operation, place and names.
  bool IsSameCall(const Call& a, const Call& b) {
    return a.signature == signatures(b.signature) && a.site == sites(b.site) &&
           a.names == names(b.names) && a.seq == b.seq && a.flags == b.flags;
  }

  Translation<Signature> signatures;
  Translation<Site> sites;
  Translation<std::string> names;
};

// What must be the same on all ranks once it is done; the root of a broadcast may have its input
// only.
uint64_t ResultOf(const Signature& signature, const Call& call) {
  if (!HasEqualResults(signature.operation)) return 0;
  return call.output == 0 && signature.operation == Operation::kBroadcast ? call.input
                                                                          : call.output;
}

// Nothing that a matcher looks at differs. The input of a broadcast's root is its result.
bool CanShare(const Signature& signature, const Call& a, const Call& b) {
  if (a.step != b.step || a.thread != b.thread) return false;
  if (!HasEqualResults(signature.operation)) return true;
  return a.output == b.output &&
         (signature.operation != Operation::kBroadcast || a.input == b.input);
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
    if (comm.joined_as != 0) continue;
    Group& group = groups_[{comm.hash, comm.nranks, occurrence}];
    Member member{{rank, c}, comm.collectives.size()};
    // It is compared with no other rank, so that nothing is left out of it.
    if (taken.is_partial) {
      member.same = 0;
      Share(group, member);
      continue;
    }
    if (!group.members.empty()) member.same = CountSame(group.members.front().place, member.place);
    Share(group, member);
    group.members.push_back(member);
  }
}

size_t Trimmer::CountSame(const Place& first, const Place& place) {
  Terms terms(ranks_[place.rank], ranks_[first.rank]);
  const RankSummary& reference = ranks_[first.rank];
  const CallList& a = CommAt(first).collectives;
  const CallList& b = CommAt(place).collectives;
  const size_t size = std::min(a.size(), b.size());
  size_t i = 0;
  while (i < size && (b[i].flags & kNotable) == 0 && terms.IsSameCall(a[i], b[i])) {
    const Signature& signature = reference.signatures[a[i].signature];
    if (ResultOf(signature, a[i]) != ResultOf(signature, b[i])) break;
    ++i;
  }
  return i;
}

void Trimmer::Share(Group& group, const Member& member) {
  CallList& calls = CommAt(member.place).collectives;
  const size_t own = own_ == kAll ? calls.size() - member.same + std::min(member.same, window_)
                                  : std::min(calls.size(), own_);
  const size_t shared = calls.size() - own;
  if (shared == 0 && !group.sources.empty()) return;
  for (const Place& source : group.sources)
    if (ShareWith(source, member.place, shared)) return;
  if (group.sources.size() == kMostSources) return;
  calls.BecomeSource();
  group.sources.push_back(member.place);
}

bool Trimmer::ShareWith(const Place& source, const Place& place, size_t size) {
  Terms terms(ranks_[place.rank], ranks_[source.rank]);
  const RankSummary& reference = ranks_[source.rank];
  const CallList& a = CommAt(source).collectives;
  CallList& b = CommAt(place).collectives;
  std::vector<CallList::Exception> exceptions;
  const size_t most = std::max(kFewExceptions, size / kFewExceptions);
  size_t next = 0;  // those before are shared, or exceptions
  for (size_t i = 0; i < size; ++i) {
    if (i < a.size() && terms.IsSameCall(a[i], b[i]) &&
        CanShare(reference.signatures[a[i].signature], a[i], b[i]))
      continue;
    // What the rank read before its call is looked for by times: those before are its own, too.
    constexpr size_t kBefore = 2;
    for (next = std::max(next, i - std::min(i, kBefore)); next <= i; ++next)
      exceptions.emplace_back(next, b[next]);
    if (exceptions.size() > most) return false;
  }
  b.Share(a, size, std::move(exceptions));
  return true;
}

std::vector<RankSummary> Trimmer::Finish() {
  for (auto& [key, group] : groups_) {
    if (group.members.size() < 2) continue;
    size_t same = SIZE_MAX;
    for (const Member& member : group.members) same = std::min(same, member.same);
    const size_t left_out = same > window_ ? same - window_ : 0;
    for (const Member& member : group.members) {
      CommSummary& comm = CommAt(member.place);
      comm.collectives.DropFront(left_out);
      comm.left_out = left_out;
    }
  }
  return std::move(ranks_);
}

}  // namespace deja::check
