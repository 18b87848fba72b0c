// order, where signatures and places agree: what the program calls the operands does not.
#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "check/findings/matchers.h"
#include "check/matching/comm_view.h"
#include "check/matching/standing.h"

namespace deja::check {
namespace {

// "key=loss_a kind=x": the parts.
std::vector<std::string_view> PartsOf(std::string_view names) {
  std::vector<std::string_view> parts;
  while (!names.empty()) {
    const size_t end = std::min(names.find(' '), names.size());
    parts.push_back(names.substr(0, end));
    names.remove_prefix(std::min(end + 1, names.size()));
  }
  return parts;
}

bool HasPart(std::string_view names, std::string_view part) {
  const std::vector<std::string_view> parts = PartsOf(names);
  return std::find(parts.begin(), parts.end(), part) != parts.end();
}

constexpr size_t kMostNames = 64;  // that a loop goes through

// The calls of one place around `index`, with no other call between: what a loop over names makes.
// Empty: they are too many for that.
std::vector<Call> LoopAround(const CallList& calls, size_t index) {
  const auto same = [&](size_t i) {
    return calls[i].site == calls[index].site && calls[i].step == calls[index].step;
  };
  size_t begin = index;
  while (begin > 0 && index - begin < kMostNames && same(begin - 1)) --begin;
  size_t end = index + 1;
  while (end < calls.size() && end - begin <= kMostNames && same(end)) ++end;
  if (end - begin > kMostNames) return {};
  std::vector<Call> loop;
  for (size_t i = begin; i < end; ++i) loop.push_back(calls[i]);
  return loop;
}

// Names that a loop goes through, each once: what a program calls its data comes again.
bool IsLoopOverNames(std::span<const Call> calls) {
  if (calls.size() < 2) return false;
  std::set<uint32_t> names;
  for (const Call& call : calls) names.insert(call.names);
  return names.size() == calls.size() && names.count(0) == 0;
}

// A name that `a` has at `index` and `b` elsewhere in its loop.
bool IsDisplaced(const Job& job, const CallList& a, const CallList& b, size_t index) {
  const std::vector<Call> loop_of_a = LoopAround(a, index);
  const std::vector<Call> loop_of_b = LoopAround(b, index);
  if (!IsLoopOverNames(loop_of_a) || !IsLoopOverNames(loop_of_b)) return false;
  for (const std::string_view part : PartsOf(job.names[a[index].names])) {
    const auto has = [&](const Call& call) { return HasPart(job.names[call.names], part); };
    if (has(b[index])) continue;
    if (std::count_if(loop_of_a.begin(), loop_of_a.end(), has) == 1 &&
        std::count_if(loop_of_b.begin(), loop_of_b.end(), has) == 1)
      return true;
  }
  return false;
}

bool MatchNamesOf(const Job& job, const Communicator& communicator, size_t comparable,
                  Found& found) {
  const CommView view(job, communicator);
  if (view.members().size() < 2) return false;
  const Member& first = view.members().front();
  const CallList& calls = view.CallsOf(first);
  for (size_t i = 0; i < std::min(calls.size(), comparable); ++i) {
    if (calls[i].names == 0) continue;
    for (const Member& member : view.members()) {
      const CallList& its = view.CallsOf(member);
      if (its.size() <= i || its[i].names == calls[i].names || its[i].site != calls[i].site)
        continue;
      if (!IsDisplaced(job, calls, its, i) && !IsDisplaced(job, its, calls, i)) continue;
      std::vector<Member> same;
      std::vector<Member> other;
      for (const Member& one : view.members()) {
        if (view.CallsOf(one).size() <= i) continue;
        (view.CallAt(one, i).names == calls[i].names ? same : other).push_back(one);
      }
      if (other.size() > same.size()) std::swap(same, other);
      Finding finding = view.Begin(Kind::kOrder, i);
      const Call& of_same = view.CallAt(same.front(), i);
      const Call& of_other = view.CallAt(other.front(), i);
      finding.blamed = view.Numbers(other);
      finding.step = of_same.step;
      finding.time_ns = std::min(of_same.time_ns, of_other.time_ns);
      Side blamed = view.SideOfClass({other}, i);
      Side others = view.SideOfClass({same}, i);
      blamed.what += " of " + job.names[of_other.names];
      others.what += " of " + job.names[of_same.names];
      finding.sentence = fmt::format(
          "at collective {} of {} {} called {}, {} {}{}: the operations fit and what the program "
          "calls the values does not, so values of different names are put together",
          view.NumberAt(i), finding.comm, RanksText(finding.blamed), blamed.what,
          RanksText(view.Numbers(same)), others.what, job.AtSite(of_same.site));
      finding.sides = {std::move(blamed), std::move(others)};
      view.AddWaiting(finding);
      for (const Side& side : finding.sides) finding.next.push_back(ShowCommand(side));
      finding.next.push_back(ReplayCommand(finding.blamed.front()));
      found.findings.push_back(std::move(finding));
      return true;
    }
  }
  return false;
}

}  // namespace

void MatchNames(const Job& job, Found& found) {
  for (size_t c = 0; c < job.communicators.size(); ++c)
    if (!job.communicators[c].is_ambiguous &&
        MatchNamesOf(job, job.communicators[c], found.comparable[c], found))
      return;
}

}  // namespace deja::check
