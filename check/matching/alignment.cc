#include "check/matching/alignment.h"

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "check/matching/standing.h"

namespace deja::check {
namespace {

constexpr size_t kBefore = 48;  // calls in front of the first difference
constexpr size_t kAfter = 96;   // and after it

// What it costs to take two calls for the same one, or to leave one out. Calls of one signature
// from two places are often the same (one rank's branch), so that is cheaper than leaving both out;
// calls of one place with other arguments are one call, too.
constexpr uint32_t kGap = 4;
constexpr uint32_t kOtherPlace = 1;
constexpr uint32_t kOtherStep = 2;
constexpr uint32_t kOtherArguments = 3;
constexpr uint32_t kOtherType = 5;
constexpr uint32_t kOtherCall = 20;

uint32_t CostOf(const Job& job, const Call& a, const Call& b) {
  const uint32_t step = a.step == b.step ? 0 : kOtherStep;
  const bool same_place = a.site == b.site;
  if (a.signature == b.signature || Fit(job.signatures[a.signature], job.signatures[b.signature]))
    return step + (same_place ? 0 : kOtherPlace);
  const bool same_operation =
      job.signatures[a.signature].operation == job.signatures[b.signature].operation;
  const bool same_line = job.IsSameLine(a.site, b.site);
  if (!same_operation || !same_line || step != 0) return kOtherCall;
  // The sizes of objects and their bytes are gathered by one line.
  const bool same_type = job.signatures[a.signature].dtype == job.signatures[b.signature].dtype;
  return same_type ? kOtherArguments : kOtherType;
}

enum class Move : uint8_t { kBoth, kOnlyA, kOnlyB };

struct Moves {
  std::vector<Move> list;  // from the beginning of the window
  std::vector<bool> fits;  // of kBoth: they fit
};

// A part of a rank's calls.
struct Window {
  std::vector<Call> calls;
  bool goes_on = false;  // or it would have: its last call is not done
};

// The cheapest way through both windows. What has nothing beside it, because the other window has
// ended before, costs nothing if that one goes on.
Moves CheapestWay(const Job& job, const Window& in_a, const Window& in_b) {
  const std::span<const Call> a = in_a.calls;
  const std::span<const Call> b = in_b.calls;
  const size_t columns = b.size() + 1;
  std::vector<uint32_t> cost((a.size() + 1) * columns);
  const auto at = [&](size_t i, size_t j) -> uint32_t& { return cost[i * columns + j]; };
  for (size_t i = 0; i <= a.size(); ++i) {
    for (size_t j = 0; j <= b.size(); ++j) {
      if (i == 0 || j == 0) {
        at(i, j) = static_cast<uint32_t>(i + j) * kGap;
        continue;
      }
      at(i, j) = std::min({at(i - 1, j - 1) + CostOf(job, a[i - 1], b[j - 1]), at(i - 1, j) + kGap,
                           at(i, j - 1) + kGap});
    }
  }
  // The farthest one of ends that cost the same.
  size_t i = a.size();
  size_t j = b.size();
  uint32_t best = at(i, j);
  for (size_t k = a.size() + 1; in_b.goes_on && k-- > 0;)
    if (at(k, b.size()) < best) best = at(i = k, j = b.size());
  for (size_t k = b.size() + 1; in_a.goes_on && k-- > 0;)
    if (at(a.size(), k) < best) best = at(i = a.size(), j = k);
  Moves moves;
  // Among calls that are all the same one the last is the one too many: gaps come late.
  while (i > 0 || j > 0) {
    if (i > 0 && at(i, j) == at(i - 1, j) + kGap) {
      --i;
      moves.list.push_back(Move::kOnlyA);
      moves.fits.push_back(false);
    } else if (j > 0 && at(i, j) == at(i, j - 1) + kGap) {
      --j;
      moves.list.push_back(Move::kOnlyB);
      moves.fits.push_back(false);
    } else {
      --i, --j;
      moves.list.push_back(Move::kBoth);
      moves.fits.push_back(Fit(job.signatures[a[i].signature], job.signatures[b[j].signature]));
    }
  }
  std::reverse(moves.list.begin(), moves.list.end());
  std::reverse(moves.fits.begin(), moves.fits.end());
  return moves;
}

// Whether both sides made the same calls in another order. What one side leaves out (or adds) at
// the first gap, the other adds (or leaves out) at one of the gaps that follow soon.
bool IsMadeLater(const Job& job, std::span<const Call> a, std::span<const Call> b,
                 const Moves& moves, size_t gap, size_t soon) {
  size_t i = 0;
  size_t j = 0;
  const Call* left = nullptr;
  for (size_t k = 0; k < moves.list.size() && k < gap + soon; ++k) {
    const Move move = moves.list[k];
    const Call* call = move == Move::kOnlyA ? &a[i] : move == Move::kOnlyB ? &b[j] : nullptr;
    if (k == gap) left = call;
    if (k > gap && move != moves.list[gap] && call != nullptr && call->site == left->site &&
        Fit(job.signatures[call->signature], job.signatures[left->signature]))
      return true;
    if (move != Move::kOnlyB) ++i;
    if (move != Move::kOnlyA) ++j;
  }
  return false;
}

}  // namespace

Alignment Align(const Job& job, const CallList& a, const CallList& b, size_t first) {
  const size_t begin = first - std::min(first, kBefore);
  const auto window = [&](const CallList& calls) {
    const size_t end = std::min(calls.size(), first + kAfter);
    Window made{{}, end < calls.size() || WaitsIn(calls.back())};
    for (size_t i = begin; i < end; ++i) made.calls.push_back(calls[i]);
    return made;
  };
  const Window in_a = window(a);
  const Window in_b = window(b);
  const Moves moves = CheapestWay(job, in_a, in_b);
  Alignment found{Parting::kReplaced, first, first, 0};
  size_t i = 0;
  size_t j = 0;
  size_t k = 0;
  while (k < moves.list.size() && moves.fits[k]) ++i, ++j, ++k;
  if (k == moves.list.size()) return found;
  const size_t at_a = i;
  const size_t at_b = j;
  size_t only_a = 0;
  size_t only_b = 0;
  size_t next = k;
  for (; next < moves.list.size() && moves.list[next] != Move::kBoth; ++next)
    ++(moves.list[next] == Move::kOnlyA ? only_a : only_b);
  const bool goes_on = next < moves.list.size() && moves.fits[next];
  const bool one_side = (only_a == 0) != (only_b == 0);
  if (!goes_on || !one_side) return found;
  found.a_index = begin + at_a;
  found.b_index = begin + at_b;
  found.count = only_a + only_b;
  found.parting = only_a != 0 ? Parting::kLeftOut : Parting::kExtra;
  if (IsMadeLater(job, in_a.calls, in_b.calls, moves, k, 2 * (found.count + 1)))
    found.parting = Parting::kSwapped;
  return found;
}

}  // namespace deja::check
