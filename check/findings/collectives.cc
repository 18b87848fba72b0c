// signature and order: the calls of a communicator's ranks at one number; and missing, where one of
// them goes round a loop once more. Ranks that did not come at all are in absences.cc.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "check/findings/absences.h"
#include "check/findings/matchers.h"
#include "check/matching/alignment.h"
#include "check/matching/comm_view.h"
#include "check/matching/standing.h"

namespace deja::check {
namespace {

using Calls = CallList;

std::string Times(size_t count, std::string_view call) {
  return count == 1 ? fmt::format("one {}", call) : fmt::format("{} calls, first {}", count, call);
}

class MismatchMatcher {
 public:
  MismatchMatcher(const CommView& view, Found& found)
      : job_(view.job()), view_(view), found_(found) {}

  void OnMismatch(size_t index) {
    const std::vector<Class> classes = view_.ClassesAt(index);
    const Class& most = classes[0];
    const Class& fewest = classes[1];
    if (classes.size() == 2) {
      const Alignment alignment =
          Align(job_, view_.CallsOf(most.First()), view_.CallsOf(fewest.First()), index);
      if (alignment.parting == Parting::kSwapped) return OnSwapped(alignment, most, fewest, index);
      if (alignment.parting != Parting::kReplaced) return OnGap(alignment, most, fewest, index);
      if (UseTwoThreads(most, fewest, index)) return OnTwoThreads(most, fewest, index);
      if (OnOtherStep(most, fewest, index)) return;
      if (OnAhead(most, fewest, index)) return;
      if (OnLeftLoop(most, fewest, index)) return;
    }
    OnSignature(classes, index);
  }

 private:
  static void AddCommands(Finding& finding) {
    for (const Side& side : finding.sides) finding.next.push_back(ShowCommand(side));
    if (!finding.blamed.empty()) finding.next.push_back(ReplayCommand(finding.blamed.front()));
  }

  // One call more or less: both sides have the same number of ranks where neither is the odd one.
  void OnGap(const Alignment& alignment, const Class& most, const Class& fewest, size_t index) {
    const bool extra = alignment.parting == Parting::kExtra;
    const size_t at = extra ? alignment.b_index : alignment.a_index;
    const Member& who = extra ? fewest.First() : most.First();
    const Call& call = view_.CallAt(who, at);
    Finding finding = view_.Begin(Kind::kOrder, std::min(alignment.a_index, alignment.b_index));
    finding.blamed = view_.Numbers(fewest.members);
    finding.step = call.step;
    finding.time_ns = call.time_ns;
    const std::vector<uint32_t> others = view_.Numbers(most.members);
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
    view_.AddWaiting(finding);
    AddCommands(finding);
    found_.findings.push_back(std::move(finding));
  }

  void AddSidesAt(Finding& finding, const Class& most, const Class& fewest, size_t in_most,
                  size_t in_fewest) const {
    if (in_fewest < view_.CallsOf(fewest.First()).size())
      finding.sides.push_back(view_.SideOfClass(fewest, in_fewest));
    if (in_most < view_.CallsOf(most.First()).size())
      finding.sides.push_back(view_.SideOfClass(most, in_most));
  }

  // Where the difference of order becomes one that a library could see.
  void AddShift(Finding& finding, const Class& most, const Class& fewest, size_t index) const {
    const Call& a = view_.CallAt(fewest.First(), index);
    const Call& b = view_.CallAt(most.First(), index);
    finding.evidence.push_back(fmt::format(
        "at collective {} {} called {}{}, {} {}{}", view_.NumberAt(index),
        RanksText(view_.Numbers(fewest.members)), job_.SignatureText(a), job_.AtSite(a.site),
        RanksText(view_.Numbers(most.members)), job_.SignatureText(b), job_.AtSite(b.site)));
  }

  void OnSwapped(const Alignment& alignment, const Class& most, const Class& fewest, size_t index) {
    const size_t at = std::min(alignment.a_index, alignment.b_index);
    Finding finding = view_.Begin(Kind::kOrder, at);
    finding.blamed = view_.Numbers(fewest.members);
    AddSidesAt(finding, most, fewest, at, at);
    const Call& call = view_.CallAt(fewest.First(), at);
    finding.step = call.step;
    finding.time_ns = call.time_ns;
    finding.sentence = fmt::format(
        "{} made the same collectives on {} as {} in another order, from collective {} on: {}{}, "
        "{} {}{}",
        RanksText(finding.blamed), finding.comm, RanksText(view_.Numbers(most.members)),
        view_.NumberAt(at), job_.SignatureText(call), job_.AtSite(call.site),
        RanksText(view_.Numbers(most.members)), job_.SignatureText(view_.CallAt(most.First(), at)),
        job_.AtSite(view_.CallAt(most.First(), at).site));
    if (at != index) AddShift(finding, most, fewest, index);
    view_.AddWaiting(finding);
    AddCommands(finding);
    found_.findings.push_back(std::move(finding));
  }

  // The calls at `index` came from different threads, and the communicator has been used by both.
  bool UseTwoThreads(const Class& most, const Class& fewest, size_t index) const {
    const uint32_t a = view_.CallAt(most.First(), index).thread;
    const uint32_t b = view_.CallAt(fewest.First(), index).thread;
    if (a == b) return false;
    const auto uses = [&](const Class& one) {
      const Calls& calls = view_.CallsOf(one.First());
      const auto by = [&](uint32_t thread) {
        return std::any_of(calls.begin(), calls.end(),
                           [&](const Call& call) { return call.thread == thread; });
      };
      return by(a) && by(b);
    };
    return uses(most) || uses(fewest);
  }

  void OnTwoThreads(const Class& most, const Class& fewest, size_t index) {
    Finding finding = view_.Begin(Kind::kOrder, index);
    finding.blamed = view_.Numbers(fewest.members);
    AddSidesAt(finding, most, fewest, index, index);
    const Call& a = view_.CallAt(fewest.First(), index);
    const Call& b = view_.CallAt(most.First(), index);
    finding.step = a.step;
    finding.time_ns = a.time_ns;
    finding.sentence = fmt::format(
        "two threads use {} without an order: at collective {} {} called {}{} on one thread, {} "
        "{}{} on another",
        finding.comm, view_.NumberAt(index), RanksText(finding.blamed), job_.SignatureText(a),
        job_.AtSite(a.site), RanksText(view_.Numbers(most.members)), job_.SignatureText(b),
        job_.AtSite(b.site));
    view_.AddWaiting(finding);
    AddCommands(finding);
    found_.findings.push_back(std::move(finding));
  }

  // One side is in the next step already and has made nothing since: it left the rest of this one
  // out.
  bool OnOtherStep(const Class& most, const Class& fewest, size_t index) {
    const uint64_t step_of_most = view_.CallAt(most.First(), index).step;
    const uint64_t step_of_fewest = view_.CallAt(fewest.First(), index).step;
    if (step_of_most == kNoStep || step_of_fewest == kNoStep || step_of_most == step_of_fewest)
      return false;
    const bool fewest_ahead = step_of_fewest > step_of_most;
    const Class& ahead = fewest_ahead ? fewest : most;
    const Class& behind = fewest_ahead ? most : fewest;
    if (std::max(step_of_fewest, step_of_most) != std::min(step_of_fewest, step_of_most) + 1)
      return false;
    const Call& left_out = view_.CallAt(behind.First(), index);
    Finding finding = view_.Begin(Kind::kOrder, index);
    finding.blamed = view_.Numbers(fewest.members);
    finding.step = left_out.step;
    finding.time_ns = left_out.time_ns;
    AddSidesAt(finding, most, fewest, index, index);
    const std::string what = fmt::format("{} #{} on {}{}", job_.SignatureText(left_out),
                                         left_out.seq, finding.comm, job_.AtSite(left_out.site));
    const Call& next = view_.CallAt(ahead.First(), index);
    const std::string instead =
        fmt::format("{}{} of step {}", job_.SignatureText(next), job_.AtSite(next.site), next.step);
    if (fewest_ahead)
      finding.sentence = fmt::format("{} left {} out in step {}, and went on to {}",
                                     RanksText(finding.blamed), what, left_out.step, instead);
    else
      finding.sentence =
          fmt::format("{} made {} in step {}, which {} did not make: they went on to {}",
                      RanksText(finding.blamed), what, left_out.step,
                      RanksText(view_.Numbers(most.members)), instead);
    view_.AddWaiting(finding);
    AddCommands(finding);
    found_.findings.push_back(std::move(finding));
    return true;
  }

  // The call was made before, by all: what a loop does.
  bool IsOfLoop(const Class& one, size_t index) const {
    const Call& call = view_.CallAt(one.First(), index);
    const Calls& calls = view_.CallsOf(one.First());
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
    const Calls& calls = view_.CallsOf(view_.members().front());
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
    const Call& of_most = view_.CallAt(most.First(), index);
    const Call& of_fewest = view_.CallAt(fewest.First(), index);
    size_t count = CallsBetween(of_most, of_fewest, index);
    const bool fewest_ahead = count != 0;
    if (!fewest_ahead) count = CallsBetween(of_fewest, of_most, index);
    if (count == 0) return false;
    Finding finding = view_.Begin(Kind::kOrder, index);
    finding.blamed = view_.Numbers(fewest.members);
    finding.step = of_most.step;
    finding.time_ns = std::min(of_most.time_ns, of_fewest.time_ns);
    AddSidesAt(finding, most, fewest, index, index);
    const std::string others = RanksText(view_.Numbers(most.members));
    const std::string calls = count == 1 ? "that" : fmt::format("{} calls from that on", count);
    finding.sentence = fmt::format(
        "{} called {} #{} on {}{} where {} called {}{}: {}", RanksText(finding.blamed),
        job_.SignatureText(of_fewest), of_fewest.seq, finding.comm, job_.AtSite(of_fewest.site),
        others, job_.SignatureText(of_most), job_.AtSite(of_most.site),
        fewest_ahead ? fmt::format("it left {} out, or made its own once more", calls)
                     : fmt::format("it made its own once more, or {} left {} out", others, calls));
    view_.AddWaiting(finding);
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
    const Call& loop = view_.CallAt(in_loop.First(), index);
    const Call& after = view_.CallAt(outside.First(), index);
    // One call with other arguments is no other place in the program.
    if (job_.IsSameLine(loop.site, after.site)) return false;
    const bool is_barrier = job_.signatures[after.signature].operation == Operation::kBarrier;
    if (!is_barrier && most.members.size() == fewest.members.size()) return false;
    if (!is_barrier && most_loop) return false;
    Finding finding = view_.Begin(Kind::kMissing, index);
    finding.blamed = view_.Numbers(fewest.members);
    finding.step = loop.step;
    finding.time_ns = std::min(loop.time_ns, after.time_ns);
    AddSidesAt(finding, most, fewest, index, index);
    finding.sentence = fmt::format(
        "{} never entered {} #{} on {}{}, which {} entered once more: {} in {}{} instead",
        RanksText(view_.Numbers(outside.members)), job_.SignatureText(loop), loop.seq, finding.comm,
        job_.AtSite(loop.site), RanksText(view_.Numbers(in_loop.members)),
        outside.members.size() == 1 ? "it is" : "they are", job_.SignatureText(after),
        job_.AtSite(after.site));
    view_.AddWaiting(finding);
    AddCommands(finding);
    found_.findings.push_back(std::move(finding));
    return true;
  }

  void OnSignature(const std::vector<Class>& classes, size_t index) {
    Finding finding = view_.Begin(Kind::kSignature, index);
    const Class& most = classes.front();
    const Call& usual = view_.CallAt(most.First(), index);
    std::vector<Member> odd;
    std::string text;
    Field field = Field::kRoot;
    for (size_t i = 1; i < classes.size(); ++i) {
      odd.insert(odd.end(), classes[i].members.begin(), classes[i].members.end());
      const Call& call = view_.CallAt(classes[i].First(), index);
      field = std::min(field, FirstDifference(job_.signatures[usual.signature],
                                              job_.signatures[call.signature]));
      finding.sides.push_back(view_.SideOfClass(classes[i], index));
      // Every rank may have another count: a few of them show that.
      constexpr size_t kShown = 4;
      if (i <= kShown)
        text += fmt::format("{} called {}{}, ", RanksText(view_.Numbers(classes[i].members)),
                            job_.SignatureText(call), job_.AtSite(call.site));
      if (i == kShown + 1) text += fmt::format("{} more differ, ", classes.size() - i);
    }
    finding.blamed = view_.Numbers(odd);
    finding.sides.push_back(view_.SideOfClass(most, index));
    finding.step = usual.step;
    finding.time_ns = usual.time_ns;
    finding.sentence =
        fmt::format("at collective {} of {}, {}{} {}{}: {} differs", view_.NumberAt(index),
                    finding.comm, text, RanksText(view_.Numbers(most.members)),
                    job_.SignatureText(usual), job_.AtSite(usual.site), NameOf(field));
    view_.AddWaiting(finding);
    for (size_t i = 0; i < finding.sides.size() && i < 2; ++i)
      finding.next.push_back(ShowCommand(finding.sides[i]));
    finding.next.push_back(ReplayCommand(finding.blamed.front()));
    found_.findings.push_back(std::move(finding));
  }

  const Job& job_;
  const CommView& view_;
  Found& found_;
};

// How many of its collectives are comparable.
size_t MatchCommunicator(const Job& job, const Communicator& communicator, Found& found) {
  if (communicator.is_ambiguous) return 0;
  const CommView view(job, communicator);
  if (view.members().size() < 2) return SIZE_MAX;
  const size_t first = view.FirstThatDoesNotFit();
  if (first == SIZE_MAX)
    MatchAbsences(view, found);
  else
    MismatchMatcher(view, found).OnMismatch(first);
  return first;
}

}  // namespace

void MatchCollectives(const Job& job, Found& found) {
  for (const Communicator& communicator : job.communicators)
    found.comparable.push_back(MatchCommunicator(job, communicator, found));
}

}  // namespace deja::check
