#include "check/findings/fold.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>
#include <vector>

namespace deja::check {
namespace {

// Ranks have parted: what comes later need not fit any more.
bool Parts(Kind kind) {
  switch (kind) {
    case Kind::kSignature:
    case Kind::kOrder:
    case Kind::kMissing:
    case Kind::kLeftEarly:
    case Kind::kPairing:
    case Kind::kCycle:
    case Kind::kGroup:
    case Kind::kStore:
    case Kind::kOutside:
      return true;
    default:
      return false;
  }
}

bool IsEnd(Kind kind) {
  return kind == Kind::kMissing || kind == Kind::kLeftEarly || kind == Kind::kCycle ||
         kind == Kind::kOutside;
}

// A cycle is why each of its ranks is missing where another one waits, whichever came first.
bool IsOfCycle(const Finding& finding, const Finding& cycle) {
  if (cycle.kind != Kind::kCycle ||
      (finding.kind != Kind::kMissing && finding.kind != Kind::kOutside &&
       finding.kind != Kind::kPairing))
    return false;
  return std::all_of(finding.blamed.begin(), finding.blamed.end(), [&](uint32_t rank) {
    return std::binary_search(cycle.blamed.begin(), cycle.blamed.end(), rank);
  });
}

// The ranks to blame for `effect` could not do otherwise after `cause`.
bool FollowsFrom(const Finding& effect, const Finding& cause) {
  if (IsOfCycle(effect, cause)) return true;
  if (IsOfCycle(cause, effect)) return false;
  // A rank that has left is missing everywhere.
  const bool same_ranks = effect.blamed == cause.blamed;
  if (cause.kind == Kind::kLeftEarly && IsEnd(effect.kind) && same_ranks) return true;
  if (effect.time_ns < cause.time_ns) return false;
  if (Parts(cause.kind)) return true;
  // A tensor that was changed too early differs afterwards.
  if (cause.kind == Kind::kUnawaited)
    return effect.kind == Kind::kReplica || effect.kind == Kind::kCorrupt ||
           effect.kind == Kind::kNanOrigin || effect.kind == Kind::kUnawaited;
  if (cause.kind == Kind::kNanOrigin) return effect.kind == Kind::kNanOrigin || IsEnd(effect.kind);
  const bool wrong_bytes = cause.kind == Kind::kReplica || cause.kind == Kind::kCorrupt;
  if (wrong_bytes)
    return effect.kind == Kind::kReplica || effect.kind == Kind::kCorrupt ||
           effect.kind == Kind::kNanOrigin || IsEnd(effect.kind);
  return false;
}

// What says most of a cause comes first among those of one time.
int Weight(Kind kind) {
  constexpr std::array kOrder = {Kind::kOrder,   Kind::kSignature, Kind::kStore,     Kind::kGroup,
                                 Kind::kPairing, Kind::kUnawaited, Kind::kNanOrigin, Kind::kCorrupt,
                                 Kind::kReplica, Kind::kCycle,     Kind::kLeftEarly, Kind::kMissing,
                                 Kind::kOutside, Kind::kInput,     Kind::kStraggler};
  return static_cast<int>(std::find(kOrder.begin(), kOrder.end(), kind) - kOrder.begin());
}

}  // namespace

std::vector<Finding> Fold(std::vector<Finding> findings) {
  std::stable_sort(findings.begin(), findings.end(), [](const Finding& a, const Finding& b) {
    return std::pair(a.time_ns, Weight(a.kind)) < std::pair(b.time_ns, Weight(b.kind));
  });
  std::vector<Finding> causes;
  std::vector<bool> folded(findings.size());
  for (size_t i = 0; i < findings.size(); ++i) {
    if (folded[i]) continue;
    // One that came later may be the cause all the same (a cycle).
    size_t cause = i;
    for (size_t j = i + 1; j < findings.size(); ++j)
      if (!folded[j] && FollowsFrom(findings[i], findings[j]) &&
          !FollowsFrom(findings[j], findings[i])) {
        cause = j;
        break;
      }
    folded[cause] = true;
    for (size_t j = 0; j < findings.size(); ++j) {
      if (folded[j] || !FollowsFrom(findings[j], findings[cause])) continue;
      folded[j] = true;
      findings[cause].consequences.push_back({findings[j].kind, findings[j].sentence});
    }
    causes.push_back(std::move(findings[cause]));
  }
  return causes;
}

}  // namespace deja::check
