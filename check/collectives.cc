// signature, order, missing, left-early: the collectives of one communicator, rank against rank.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "check/alignment.h"
#include "check/matchers.h"
#include "check/standing.h"

namespace deja::check {
namespace {

using Calls = std::vector<Call>;

const Calls& CallsOf(const Job& job, const Member& member) {
  return job.CommOf(member).collectives;
}

std::vector<uint32_t> Numbers(const Job& job, const std::vector<Member>& members) {
  std::set<uint32_t> numbers;
  for (const Member& member : members) numbers.insert(job.NumberOf(member));
  return {numbers.begin(), numbers.end()};
}

std::string Times(size_t count, std::string_view call) {
  return count == 1 ? fmt::format("one {}", call) : fmt::format("{} calls, first {}", count, call);
}

// Members whose calls at one number fit each other.
struct Class {
  std::vector<Member> members;
  [[nodiscard]] const Member& First() const { return members.front(); }
};

class CollectiveMatcher {
 public:
  CollectiveMatcher(const Job& job, const Communicator& communicator, Found& found)
      : job_(job), communicator_(communicator), found_(found) {
    for (const Member& member : communicator.members)
      if (!job.RankOf(member).is_partial) members_.push_back(member);
  }

  // Returns how many collectives are comparable.
  size_t Match() {
    if (members_.size() < 2) return SIZE_MAX;
    const size_t first = FirstThatDoesNotFit();
    if (first != SIZE_MAX) {
      OnMismatch(first);
      return first;
    }
    OnLengths();
    return SIZE_MAX;
  }

 private:
  const Call& CallAt(const Member& member, size_t index) const {
    return CallsOf(job_, member)[index];
  }
  bool FitAt(const Member& a, const Member& b, size_t index) const {
    const uint32_t of_a = CallAt(a, index).signature;
    const uint32_t of_b = CallAt(b, index).signature;
    return of_a == of_b || Fit(job_.signatures[of_a], job_.signatures[of_b]);
  }

  size_t FirstThatDoesNotFit() const {
    size_t found = SIZE_MAX;
    const auto longest =
        std::max_element(members_.begin(), members_.end(), [&](const Member& a, const Member& b) {
          return CallsOf(job_, a).size() < CallsOf(job_, b).size();
        });
    for (const Member& member : members_) {
      const size_t size = std::min(CallsOf(job_, member).size(), found);
      for (size_t i = 0; i < size; ++i)
        if (!FitAt(*longest, member, i)) found = i;
    }
    return found;
  }

  // By what they call at `index`, the largest first; of equal ones that with the lower rank.
  std::vector<Class> ClassesAt(size_t index) const {
    std::vector<Class> classes;
    for (const Member& member : members_) {
      if (CallsOf(job_, member).size() <= index) continue;
      const auto it = std::find_if(classes.begin(), classes.end(), [&](const Class& one) {
        return FitAt(one.First(), member, index);
      });
      if (it == classes.end())
        classes.push_back({{member}});
      else
        it->members.push_back(member);
    }
    std::stable_sort(classes.begin(), classes.end(), [](const Class& a, const Class& b) {
      return a.members.size() > b.members.size();
    });
    return classes;
  }

  Finding Begin(Kind kind, size_t index) const {
    Finding finding;
    finding.kind = kind;
    finding.comm = job_.NameOf(communicator_);
    finding.members = job_.RanksOf(communicator_);
    finding.number = index + 1;
    if (index > 0) {
      const Member& member = members_.front();
      const Call& call = CallAt(member, index - 1);
      finding.agreed = SideOf(job_, member, call);
      finding.agreed->ranks = Numbers(job_, members_);
    }
    return finding;
  }

  // Of the members that are in `index` and of no side.
  void AddWaiting(Finding& finding) const {
    for (const Member& member : members_) {
      const uint32_t rank = job_.NumberOf(member);
      if (std::find(finding.blamed.begin(), finding.blamed.end(), rank) == finding.blamed.end())
        finding.waiting.push_back(rank);
    }
    std::sort(finding.waiting.begin(), finding.waiting.end());
    finding.waiting.erase(std::unique(finding.waiting.begin(), finding.waiting.end()),
                          finding.waiting.end());
  }

  static void AddCommands(Finding& finding) {
    for (const Side& side : finding.sides) finding.next.push_back(ShowCommand(side));
    if (!finding.blamed.empty()) finding.next.push_back(ReplayCommand(finding.blamed.front()));
  }

  Side SideOfClass(const Class& one, size_t index) const {
    Side side = SideOf(job_, one.First(), CallAt(one.First(), index));
    side.ranks = Numbers(job_, one.members);
    return side;
  }

  // ---- another call at a number

  void OnMismatch(size_t index) {
    const std::vector<Class> classes = ClassesAt(index);
    const Class& most = classes[0];
    const Class& fewest = classes[1];
    if (classes.size() == 2) {
      const Alignment alignment =
          Align(job_, CallsOf(job_, most.First()), CallsOf(job_, fewest.First()), index);
      if (alignment.parting == Parting::kSwapped) return OnSwapped(alignment, most, fewest, index);
      if (alignment.parting != Parting::kReplaced) return OnGap(alignment, most, fewest, index);
      if (UseTwoThreads(most, fewest, index)) return OnTwoThreads(most, fewest, index);
      if (OnOtherStep(most, fewest, index)) return;
      if (OnAhead(most, fewest, index)) return;
      if (OnLeftLoop(most, fewest, index)) return;
    }
    OnSignature(classes, index);
  }

  // One call more or less: both sides have the same number of ranks where neither is the odd one.
  void OnGap(const Alignment& alignment, const Class& most, const Class& fewest, size_t index) {
    const bool extra = alignment.parting == Parting::kExtra;
    const size_t at = extra ? alignment.b_index : alignment.a_index;
    const Member& who = extra ? fewest.First() : most.First();
    const Call& call = CallAt(who, at);
    Finding finding = Begin(Kind::kOrder, std::min(alignment.a_index, alignment.b_index));
    finding.blamed = Numbers(job_, fewest.members);
    finding.step = call.step;
    finding.time_ns = call.time_ns;
    const std::vector<uint32_t> others = Numbers(job_, most.members);
    const std::string what = Times(alignment.count, job_.SignatureText(call));
    if (extra)
      finding.sentence =
          fmt::format("{} made {} more on {} than {}: #{}{}", RanksText(finding.blamed), what,
                      finding.comm, RanksText(others), call.seq, job_.AtSite(call.site));
    else
      finding.sentence =
          fmt::format("{} left out {} on {} that {} made as #{}{}", RanksText(finding.blamed), what,
                      finding.comm, RanksText(others), call.seq, job_.AtSite(call.site));
    AddSidesAt(finding, most, fewest, alignment.a_index, alignment.b_index);
    finding.evidence.push_back(
        fmt::format("from there on the calls of {} are those of {}, shifted by {}",
                    RanksText(finding.blamed), RanksText(others), alignment.count));
    AddShift(finding, most, fewest, index);
    AddWaiting(finding);
    AddCommands(finding);
    found_.findings.push_back(std::move(finding));
  }

  void AddSidesAt(Finding& finding, const Class& most, const Class& fewest, size_t in_most,
                  size_t in_fewest) const {
    if (in_fewest < CallsOf(job_, fewest.First()).size())
      finding.sides.push_back(SideOfClass(fewest, in_fewest));
    if (in_most < CallsOf(job_, most.First()).size())
      finding.sides.push_back(SideOfClass(most, in_most));
  }

  // Where the difference of order becomes one that a library could see.
  void AddShift(Finding& finding, const Class& most, const Class& fewest, size_t index) const {
    const Call& a = CallAt(fewest.First(), index);
    const Call& b = CallAt(most.First(), index);
    finding.evidence.push_back(fmt::format(
        "at collective {} {} called {}{}, {} {}{}", index + 1,
        RanksText(Numbers(job_, fewest.members)), job_.SignatureText(a), job_.AtSite(a.site),
        RanksText(Numbers(job_, most.members)), job_.SignatureText(b), job_.AtSite(b.site)));
  }

  void OnSwapped(const Alignment& alignment, const Class& most, const Class& fewest, size_t index) {
    const size_t at = std::min(alignment.a_index, alignment.b_index);
    Finding finding = Begin(Kind::kOrder, at);
    finding.blamed = Numbers(job_, fewest.members);
    AddSidesAt(finding, most, fewest, at, at);
    const Call& call = CallAt(fewest.First(), at);
    finding.step = call.step;
    finding.time_ns = call.time_ns;
    finding.sentence = fmt::format(
        "{} made the same collectives on {} as {} in another order, from collective {} on: {}{}, "
        "{} {}{}",
        RanksText(finding.blamed), finding.comm, RanksText(Numbers(job_, most.members)), at + 1,
        job_.SignatureText(call), job_.AtSite(call.site), RanksText(Numbers(job_, most.members)),
        job_.SignatureText(CallAt(most.First(), at)), job_.AtSite(CallAt(most.First(), at).site));
    if (at != index) AddShift(finding, most, fewest, index);
    AddWaiting(finding);
    AddCommands(finding);
    found_.findings.push_back(std::move(finding));
  }

  // The calls at `index` came from different threads, and the communicator has been used by both.
  bool UseTwoThreads(const Class& most, const Class& fewest, size_t index) const {
    const uint32_t a = CallAt(most.First(), index).thread;
    const uint32_t b = CallAt(fewest.First(), index).thread;
    if (a == b) return false;
    const auto uses = [&](const Class& one) {
      const Calls& calls = CallsOf(job_, one.First());
      const auto by = [&](uint32_t thread) {
        return std::any_of(calls.begin(), calls.end(),
                           [&](const Call& call) { return call.thread == thread; });
      };
      return by(a) && by(b);
    };
    return uses(most) || uses(fewest);
  }

  void OnTwoThreads(const Class& most, const Class& fewest, size_t index) {
    Finding finding = Begin(Kind::kOrder, index);
    finding.blamed = Numbers(job_, fewest.members);
    AddSidesAt(finding, most, fewest, index, index);
    const Call& a = CallAt(fewest.First(), index);
    const Call& b = CallAt(most.First(), index);
    finding.step = a.step;
    finding.time_ns = a.time_ns;
    finding.sentence = fmt::format(
        "two threads use {} without an order: at collective {} {} called {}{} on one thread, {} "
        "{}{} on another",
        finding.comm, index + 1, RanksText(finding.blamed), job_.SignatureText(a),
        job_.AtSite(a.site), RanksText(Numbers(job_, most.members)), job_.SignatureText(b),
        job_.AtSite(b.site));
    AddWaiting(finding);
    AddCommands(finding);
    found_.findings.push_back(std::move(finding));
  }

  // One side is in the next step already and has made nothing since: it left the rest of this one
  // out.
  bool OnOtherStep(const Class& most, const Class& fewest, size_t index) {
    const uint64_t step_of_most = CallAt(most.First(), index).step;
    const uint64_t step_of_fewest = CallAt(fewest.First(), index).step;
    if (step_of_most == kNoStep || step_of_fewest == kNoStep || step_of_most == step_of_fewest)
      return false;
    const bool fewest_ahead = step_of_fewest > step_of_most;
    const Class& ahead = fewest_ahead ? fewest : most;
    const Class& behind = fewest_ahead ? most : fewest;
    if (std::max(step_of_fewest, step_of_most) != std::min(step_of_fewest, step_of_most) + 1)
      return false;
    const Call& left_out = CallAt(behind.First(), index);
    Finding finding = Begin(Kind::kOrder, index);
    finding.blamed = Numbers(job_, fewest.members);
    finding.step = left_out.step;
    finding.time_ns = left_out.time_ns;
    AddSidesAt(finding, most, fewest, index, index);
    const std::string what = fmt::format("{} #{} on {}{}", job_.SignatureText(left_out),
                                         left_out.seq, finding.comm, job_.AtSite(left_out.site));
    const Call& next = CallAt(ahead.First(), index);
    const std::string instead =
        fmt::format("{}{} of step {}", job_.SignatureText(next), job_.AtSite(next.site), next.step);
    if (fewest_ahead)
      finding.sentence = fmt::format("{} left {} out in step {}, and went on to {}",
                                     RanksText(finding.blamed), what, left_out.step, instead);
    else
      finding.sentence =
          fmt::format("{} made {} in step {}, which {} did not make: they went on to {}",
                      RanksText(finding.blamed), what, left_out.step,
                      RanksText(Numbers(job_, most.members)), instead);
    AddWaiting(finding);
    AddCommands(finding);
    found_.findings.push_back(std::move(finding));
    return true;
  }

  // The call was made before, by all: what a loop does.
  bool IsOfLoop(const Class& one, size_t index) const {
    const Call& call = CallAt(one.First(), index);
    const Calls& calls = CallsOf(job_, one.First());
    constexpr size_t kBack = 4096;
    for (size_t i = index; i-- > index - std::min(index, kBack);)
      if (calls[i].site == call.site && calls[i].signature == call.signature) return true;
    return false;
  }

  bool IsSameCall(const Call& a, const Call& b) const {
    return a.signature == b.signature && a.site == b.site;
  }

  // How many calls lie between `due` and `other` in the loop that the calls before `index` are;
  // 0: they are not of one loop, or `due` is not what followed before.
  size_t CallsBetween(const Call& due, const Call& other, size_t index) const {
    const Calls& calls = CallsOf(job_, members_.front());
    constexpr size_t kBack = 4096;
    constexpr size_t kAhead = 64;
    for (size_t p = index; p-- > index - std::min(index, kBack);) {
      const bool follows = p == 0 || IsSameCall(calls[p - 1], calls[index - 1]);
      if (!follows || !IsSameCall(calls[p], due)) continue;
      for (size_t k = 1; k <= kAhead && p + k < index; ++k)
        if (IsSameCall(calls[p + k], other)) return k;
      return 0;
    }
    return 0;
  }

  // Both calls are of a loop that was gone round before, and one side is ahead in it. Nothing that
  // follows shows whether it left calls out or made its own once more.
  bool OnAhead(const Class& most, const Class& fewest, size_t index) {
    const Call& of_most = CallAt(most.First(), index);
    const Call& of_fewest = CallAt(fewest.First(), index);
    size_t count = CallsBetween(of_most, of_fewest, index);
    const bool fewest_ahead = count != 0;
    if (!fewest_ahead) count = CallsBetween(of_fewest, of_most, index);
    if (count == 0) return false;
    Finding finding = Begin(Kind::kOrder, index);
    finding.blamed = Numbers(job_, fewest.members);
    finding.step = of_most.step;
    finding.time_ns = std::min(of_most.time_ns, of_fewest.time_ns);
    AddSidesAt(finding, most, fewest, index, index);
    const std::string others = RanksText(Numbers(job_, most.members));
    const std::string calls = count == 1 ? "that" : fmt::format("{} calls from that on", count);
    finding.sentence = fmt::format(
        "{} called {} #{} on {}{} where {} called {}{}: {}", RanksText(finding.blamed),
        job_.SignatureText(of_fewest), of_fewest.seq, finding.comm, job_.AtSite(of_fewest.site),
        others, job_.SignatureText(of_most), job_.AtSite(of_most.site),
        fewest_ahead ? fmt::format("it left {} out, or made its own once more", calls)
                     : fmt::format("it made its own once more, or {} left {} out", others, calls));
    AddWaiting(finding);
    AddCommands(finding);
    found_.findings.push_back(std::move(finding));
    return true;
  }

  // One side goes round a loop once more, the other has left it: a barrier after it, or what most
  // ranks do.
  bool OnLeftLoop(const Class& most, const Class& fewest, size_t index) {
    const bool most_loop = IsOfLoop(most, index);
    const bool fewest_loop = IsOfLoop(fewest, index);
    if (most_loop == fewest_loop) return false;
    const Class& in_loop = most_loop ? most : fewest;
    const Class& outside = most_loop ? fewest : most;
    const Call& loop = CallAt(in_loop.First(), index);
    const Call& after = CallAt(outside.First(), index);
    // One call with other arguments is no other place in the program.
    if (loop.site == after.site) return false;
    const bool is_barrier = job_.signatures[after.signature].operation == Operation::kBarrier;
    if (!is_barrier && most.members.size() == fewest.members.size()) return false;
    if (!is_barrier && most_loop) return false;
    Finding finding = Begin(Kind::kMissing, index);
    finding.blamed = Numbers(job_, fewest.members);
    finding.step = loop.step;
    finding.time_ns = std::min(loop.time_ns, after.time_ns);
    AddSidesAt(finding, most, fewest, index, index);
    finding.sentence = fmt::format(
        "{} never entered {} #{} on {}{}, which {} entered once more: {} in {}{} instead",
        RanksText(Numbers(job_, outside.members)), job_.SignatureText(loop), loop.seq, finding.comm,
        job_.AtSite(loop.site), RanksText(Numbers(job_, in_loop.members)),
        outside.members.size() == 1 ? "it is" : "they are", job_.SignatureText(after),
        job_.AtSite(after.site));
    AddWaiting(finding);
    AddCommands(finding);
    found_.findings.push_back(std::move(finding));
    return true;
  }

  void OnSignature(const std::vector<Class>& classes, size_t index) {
    Finding finding = Begin(Kind::kSignature, index);
    const Class& most = classes.front();
    const Call& usual = CallAt(most.First(), index);
    std::vector<Member> odd;
    std::string text;
    Field field = Field::kRoot;
    for (size_t i = 1; i < classes.size(); ++i) {
      odd.insert(odd.end(), classes[i].members.begin(), classes[i].members.end());
      const Call& call = CallAt(classes[i].First(), index);
      field = std::min(field, FirstDifference(job_.signatures[usual.signature],
                                              job_.signatures[call.signature]));
      finding.sides.push_back(SideOfClass(classes[i], index));
      // Every rank may have another count: a few of them show that.
      constexpr size_t kShown = 4;
      if (i <= kShown)
        text += fmt::format("{} called {}{}, ", RanksText(Numbers(job_, classes[i].members)),
                            job_.SignatureText(call), job_.AtSite(call.site));
      if (i == kShown + 1) text += fmt::format("{} more differ, ", classes.size() - i);
    }
    finding.blamed = Numbers(job_, odd);
    finding.sides.push_back(SideOfClass(most, index));
    finding.step = usual.step;
    finding.time_ns = usual.time_ns;
    finding.sentence =
        fmt::format("at collective {} of {}, {}{} {}{}: {} differs", index + 1, finding.comm, text,
                    RanksText(Numbers(job_, most.members)), job_.SignatureText(usual),
                    job_.AtSite(usual.site), NameOf(field));
    AddWaiting(finding);
    for (size_t i = 0; i < finding.sides.size() && i < 2; ++i)
      finding.next.push_back(ShowCommand(finding.sides[i]));
    finding.next.push_back(ReplayCommand(finding.blamed.front()));
    found_.findings.push_back(std::move(finding));
  }

  // ---- a rank did not come

  void OnLengths() {
    size_t least = SIZE_MAX;
    for (const Member& member : members_) least = std::min(least, CallsOf(job_, member).size());
    std::vector<Member> absent;
    std::vector<Member> there;
    std::vector<Member> waiting;
    for (const Member& member : members_) {
      if (CallsOf(job_, member).size() == least) {
        absent.push_back(member);
        continue;
      }
      there.push_back(member);
      if (WaitsIn(CallAt(member, least))) waiting.push_back(member);
    }
    if (waiting.empty()) return OnDiedInside(least);
    if (!communicator_.IsWhole() || members_.size() != communicator_.members.size())
      return NoteUnknown(waiting, least);
    std::vector<Member> own;
    std::copy_if(absent.begin(), absent.end(), std::back_inserter(own), [&](const Member& member) {
      const RankSummary& rank = job_.RankOf(member);
      return EndedOnItsOwn(rank) || rank.end.Well();
    });
    if (!own.empty()) return OnLeftEarly(own, waiting, least);
    // Others that had failed for another reason are not to blame for what comes of it.
    std::vector<Member> idle;
    std::copy_if(absent.begin(), absent.end(), std::back_inserter(idle),
                 [&](const Member& member) { return !HasWaited(job_.RankOf(member)); });
    const std::vector<Member>& blamed = idle.empty() ? absent : idle;
    const bool long_enough = std::any_of(waiting.begin(), waiting.end(), [&](const Member& member) {
      return WaitedLong(job_, job_.RankOf(member), job_.CommOf(member), CallAt(member, least));
    });
    if (!long_enough) return NoteUnderWay(absent, waiting, least);
    OnMissing(blamed, waiting, least);
  }

  // All entered the last call, and one of them died in it, for another reason.
  void OnDiedInside(size_t size) {
    if (size == 0) return;
    std::vector<Member> dead;
    std::vector<Member> waiting;
    for (const Member& member : members_) {
      if (CallsOf(job_, member).size() != size) return;
      const Call& call = CallAt(member, size - 1);
      if (!call.Is(kDone) && EndedOnItsOwn(job_.RankOf(member)))
        dead.push_back(member);
      else if (WaitsIn(call))
        waiting.push_back(member);
    }
    if (!dead.empty() && !waiting.empty()) OnLeftEarly(dead, waiting, size - 1);
  }

  void NoteUnknown(const std::vector<Member>& waiting, size_t index) {
    const Call& call = CallAt(waiting.front(), index);
    found_.notes.push_back(fmt::format(
        "{}: {} did not come out of {} #{}; whether all its ranks had entered it is not known, "
        "since events of some of them are not in the trace",
        job_.NameOf(communicator_), RanksText(Numbers(job_, waiting)), job_.SignatureText(call),
        call.seq));
  }
  void NoteUnderWay(const std::vector<Member>& absent, const std::vector<Member>& waiting,
                    size_t index) {
    const Call& call = CallAt(waiting.front(), index);
    found_.notes.push_back(fmt::format(
        "{}: when the recording ended {} had not entered {} #{}, which {} had; it is not known "
        "that it would not have",
        job_.NameOf(communicator_), RanksText(Numbers(job_, absent)), job_.SignatureText(call),
        call.seq, RanksText(Numbers(job_, waiting))));
  }

  Finding BeginAbsent(Kind kind, const std::vector<Member>& blamed,
                      const std::vector<Member>& waiting, size_t index) const {
    Finding finding = Begin(kind, index);
    finding.blamed = Numbers(job_, blamed);
    constexpr size_t kShown = 4;
    for (size_t i = 0; i < blamed.size() && i < kShown; ++i)
      finding.sides.push_back(StandingOf(job_, blamed[i].rank));
    Class there;
    there.members = waiting;
    finding.sides.push_back(SideOfClass(there, index));
    finding.step = CallAt(waiting.front(), index).step;
    AddWaiting(finding);
    finding.next.push_back(
        fmt::format("show RUN --rank {} --last 20 --stacks", finding.blamed.front()));
    finding.next.push_back(ShowCommand(finding.sides.back()));
    finding.next.push_back(ReplayCommand(finding.blamed.front()));
    return finding;
  }

  std::string InCall(const std::vector<Member>& waiting, size_t index) const {
    const Call& call = CallAt(waiting.front(), index);
    return fmt::format("{} #{} of {}{}", job_.SignatureText(call), call.seq,
                       job_.NameOf(communicator_), job_.AtSite(call.site));
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
    Finding finding = BeginAbsent(Kind::kLeftEarly, blamed, waiting, index);
    finding.step = job_.RankOf(*first).last_step;
    finding.time_ns = end.time_ns;
    finding.sentence =
        fmt::format("{} ended before {}, which {} entered: {}", RanksText(finding.blamed),
                    InCall(waiting, index), RanksText(Numbers(job_, waiting)),
                    WhereText(StandingOf(job_, first->rank)));
    found_.findings.push_back(std::move(finding));
  }

  void OnMissing(const std::vector<Member>& blamed, const std::vector<Member>& waiting,
                 size_t index) {
    Finding finding = BeginAbsent(Kind::kMissing, blamed, waiting, index);
    finding.time_ns = CallAt(waiting.front(), index).time_ns;
    finding.sentence =
        fmt::format("{} never entered {}, in which {} waited: {}", RanksText(finding.blamed),
                    InCall(waiting, index), RanksText(Numbers(job_, waiting)),
                    WhereText(StandingOf(job_, blamed.front().rank)));
    const Call& call = CallAt(waiting.front(), index);
    if (!call.Is(kFailed) && job_.last_time_ns > call.time_ns)
      finding.evidence.push_back(fmt::format(
          "{} waited for {:.1f} s until the recording ended", RanksText(Numbers(job_, waiting)),
          static_cast<double>(job_.last_time_ns - call.time_ns) / 1e9));
    found_.findings.push_back(std::move(finding));
  }

  const Job& job_;
  const Communicator& communicator_;
  Found& found_;
  std::vector<Member> members_;  // those of which all events are there
};

}  // namespace

void MatchCollectives(const Job& job, Found& found) {
  for (const Communicator& communicator : job.communicators) {
    if (communicator.is_ambiguous) {
      found.comparable.push_back(0);
      continue;
    }
    found.comparable.push_back(CollectiveMatcher(job, communicator, found).Match());
  }
}

}  // namespace deja::check
