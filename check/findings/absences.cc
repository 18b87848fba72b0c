#include "check/findings/absences.h"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "check/matching/standing.h"

namespace deja::check {
namespace {

// Killed without a word to it: nothing that waits for its ranks does that, but for the kernel when
// there is no memory left.
bool WasKilled(const RankSummary& rank) {
  return rank.end.kind == EndKind::kUnknown ||
         (rank.end.kind == EndKind::kEnded && rank.end.signal == SIGKILL);
}

class AbsenceMatcher {
 public:
  AbsenceMatcher(const CommView& view, Found& found)
      : job_(view.job()), view_(view), found_(found) {}

  void OnLengths() {
    size_t least = SIZE_MAX;
    for (const Member& member : view_.members())
      least = std::min(least, view_.CallsOf(member).size());
    std::vector<Member> absent;
    std::vector<Member> waiting;
    for (const Member& member : view_.members()) {
      if (view_.CallsOf(member).size() == least) {
        absent.push_back(member);
        continue;
      }
      if (WaitsIn(view_.CallAt(member, least))) waiting.push_back(member);
    }
    if (waiting.empty()) return OnDiedInside(least);
    // A job that gave a call up on purpose, and went on without one of its ranks.
    if (std::all_of(view_.members().begin(), view_.members().end(),
                    [&](const Member& member) { return job_.RankOf(member).end.Well(); }))
      return NoteGivenUp(absent, waiting, least);
    if (!view_.IsWhole()) return NoteUnknown(waiting, least);
    std::vector<Member> own;
    std::copy_if(absent.begin(), absent.end(), std::back_inserter(own), [&](const Member& member) {
      const RankSummary& rank = job_.RankOf(member);
      return EndedOnItsOwn(rank) || rank.end.Well();
    });
    // The library has told the others that it is gone: they did not wait for a live rank.
    const bool told = std::any_of(waiting.begin(), waiting.end(), [&](const Member& member) {
      return view_.CallAt(member, least).Is(kFailed);
    });
    if (own.empty() && told)
      std::copy_if(absent.begin(), absent.end(), std::back_inserter(own),
                   [&](const Member& member) { return WasKilled(job_.RankOf(member)); });
    if (!own.empty()) return OnLeftEarly(own, waiting, least);
    // Others that had failed for another reason are not to blame for what comes of it.
    std::vector<Member> idle;
    std::copy_if(absent.begin(), absent.end(), std::back_inserter(idle),
                 [&](const Member& member) { return !HasWaited(job_.RankOf(member)); });
    const std::vector<Member>& blamed = idle.empty() ? absent : idle;
    const bool long_enough = std::any_of(waiting.begin(), waiting.end(), [&](const Member& member) {
      return WaitedLong(job_, job_.RankOf(member), job_.CommOf(member),
                        view_.CallAt(member, least));
    });
    if (!long_enough) return NoteUnderWay(absent, waiting, least);
    OnMissing(blamed, waiting, least);
  }

 private:
  // All entered the last call, and one of them died in it, for another reason.
  void OnDiedInside(size_t size) {
    if (size == 0) return;
    std::vector<Member> dead;
    std::vector<Member> waiting;
    for (const Member& member : view_.members()) {
      if (view_.CallsOf(member).size() != size) return;
      const Call& call = view_.CallAt(member, size - 1);
      const RankSummary& rank = job_.RankOf(member);
      if (!call.Is(kDone) && (EndedOnItsOwn(rank) || WasKilled(rank)))
        dead.push_back(member);
      else if (WaitsIn(call))
        waiting.push_back(member);
    }
    // A job that a user kills has left no rank early.
    const bool told = std::any_of(waiting.begin(), waiting.end(), [&](const Member& member) {
      return view_.CallAt(member, size - 1).Is(kFailed);
    });
    const bool by_themselves = std::any_of(dead.begin(), dead.end(), [&](const Member& member) {
      return EndedOnItsOwn(job_.RankOf(member));
    });
    if (!told && !by_themselves) return;
    if (!dead.empty() && !waiting.empty()) OnLeftEarly(dead, waiting, size - 1);
  }

  void NoteUnknown(const std::vector<Member>& waiting, size_t index) {
    const Call& call = view_.CallAt(waiting.front(), index);
    found_.notes.push_back(fmt::format(
        "{}: {} did not come out of {} #{}; whether all its ranks had entered it is not known, "
        "since events of some of them are not in the trace",
        view_.Name(), RanksText(view_.Numbers(waiting)), job_.SignatureText(call), call.seq));
  }
  void NoteUnderWay(const std::vector<Member>& absent, const std::vector<Member>& waiting,
                    size_t index) {
    const Call& call = view_.CallAt(waiting.front(), index);
    found_.notes.push_back(fmt::format(
        "{}: when the recording ended {} had not entered {} #{}, which {} had; it is not known "
        "that it would not have",
        view_.Name(), RanksText(view_.Numbers(absent)), job_.SignatureText(call), call.seq,
        RanksText(view_.Numbers(waiting))));
  }

  void NoteGivenUp(const std::vector<Member>& absent, const std::vector<Member>& waiting,
                   size_t index) {
    const Call& call = view_.CallAt(waiting.front(), index);
    found_.notes.push_back(
        fmt::format("{}: {} did not enter {} #{}, which {} gave up; all of them ended with exit 0",
                    view_.Name(), RanksText(view_.Numbers(absent)), job_.SignatureText(call),
                    call.seq, RanksText(view_.Numbers(waiting))));
  }

  Finding BeginAbsent(Kind kind, const std::vector<Member>& blamed,
                      const std::vector<Member>& waiting, size_t index) const {
    Finding finding = view_.Begin(kind, index);
    finding.blamed = view_.Numbers(blamed);
    constexpr size_t kShown = 4;
    for (size_t i = 0; i < blamed.size() && i < kShown; ++i)
      finding.sides.push_back(StandingOf(job_, blamed[i].rank));
    Class there;
    there.members = waiting;
    finding.sides.push_back(view_.SideOfClass(there, index));
    finding.step = view_.CallAt(waiting.front(), index).step;
    view_.AddWaiting(finding);
    finding.next.push_back(
        fmt::format("show RUN --rank {} --last 20 --stacks", finding.blamed.front()));
    finding.next.push_back(ShowCommand(finding.sides.back()));
    finding.next.push_back(ReplayCommand(job_.ranks[blamed.front().rank]));
    return finding;
  }

  std::string InCall(const std::vector<Member>& waiting, size_t index) const {
    const Call& call = view_.CallAt(waiting.front(), index);
    return fmt::format("{} #{} of {}{}", job_.SignatureText(call), call.seq, view_.Name(),
                       job_.AtSite(call.site));
  }

  static std::string WhereText(const Side& side) {
    const std::string site = Describe(side.site);
    return side.what + (site.empty() ? "" : " at " + site);
  }

  void OnLeftEarly(const std::vector<Member>& own, const std::vector<Member>& waiting,
                   size_t index) {
    // The first to go, and those that went the same way: the others may have left for it.
    const auto first = std::min_element(own.begin(), own.end(), [&](const auto& a, const auto& b) {
      return job_.RankOf(a).end.time_ns < job_.RankOf(b).end.time_ns;
    });
    const EndState& end = job_.RankOf(*first).end;
    std::vector<Member> blamed;
    std::copy_if(own.begin(), own.end(), std::back_inserter(blamed), [&](const Member& member) {
      const EndState& other = job_.RankOf(member).end;
      return other.kind == end.kind && other.code == end.code && other.signal == end.signal;
    });
    const bool inside = view_.CallsOf(*first).size() > index;
    Finding finding = BeginAbsent(Kind::kLeftEarly, blamed, waiting, index);
    finding.step = job_.RankOf(*first).last_step;
    finding.time_ns = end.time_ns;
    finding.sentence =
        fmt::format("{} ended {} {}, which {} entered: {}", RanksText(finding.blamed),
                    inside ? "in" : "before", InCall(waiting, index),
                    RanksText(view_.Numbers(waiting)), WhereText(StandingOf(job_, first->rank)));
    found_.findings.push_back(std::move(finding));
  }

  void OnMissing(const std::vector<Member>& blamed, const std::vector<Member>& waiting,
                 size_t index) {
    // Alive, and in no operation: something else holds it.
    const bool outside = std::all_of(blamed.begin(), blamed.end(), [&](const Member& member) {
      const RankSummary& rank = job_.RankOf(member);
      return !HasWaited(rank) && rank.end.kind != EndKind::kExit &&
             rank.end.kind != EndKind::kSignal;
    });
    Finding finding =
        BeginAbsent(outside ? Kind::kOutside : Kind::kMissing, blamed, waiting, index);
    finding.time_ns = view_.CallAt(waiting.front(), index).time_ns;
    finding.sentence =
        fmt::format("{} never entered {}, in which {} waited: {}", RanksText(finding.blamed),
                    InCall(waiting, index), RanksText(view_.Numbers(waiting)),
                    WhereText(StandingOf(job_, blamed.front().rank)));
    const Call& call = view_.CallAt(waiting.front(), index);
    if (!call.Is(kFailed) && job_.last_time_ns > call.time_ns)
      finding.evidence.push_back(fmt::format(
          "{} waited for {:.1f} s until the recording ended", RanksText(view_.Numbers(waiting)),
          static_cast<double>(job_.last_time_ns - call.time_ns) / 1e9));
    found_.findings.push_back(std::move(finding));
  }

  const Job& job_;
  const CommView& view_;
  Found& found_;
};

}  // namespace

void MatchAbsences(const CommView& view, Found& found) {
  AbsenceMatcher(view, found).OnLengths();
}

}  // namespace deja::check
