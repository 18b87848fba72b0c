#include "check/matching/comm_view.h"

#include <algorithm>
#include <set>
#include <utility>

#include "check/matching/standing.h"

namespace deja::check {

CommView::CommView(const Job& job, const Communicator& communicator)
    : job_(job), communicator_(communicator) {
  for (const Member& member : communicator.members)
    if (!job.RankOf(member).is_partial) members_.push_back(member);
}

bool CommView::IsWhole() const {
  return communicator_.IsWhole() && members_.size() == communicator_.members.size();
}

std::vector<uint32_t> CommView::Numbers(const std::vector<Member>& members) const {
  std::set<uint32_t> numbers;
  for (const Member& member : members) numbers.insert(job_.NumberOf(member));
  return {numbers.begin(), numbers.end()};
}

bool CommView::FitAt(const Member& a, const Member& b, size_t index) const {
  const uint32_t of_a = CallAt(a, index).signature;
  const uint32_t of_b = CallAt(b, index).signature;
  return of_a == of_b || Fit(job_.signatures[of_a], job_.signatures[of_b]);
}

size_t CommView::FirstThatDoesNotFit() const {
  size_t found = SIZE_MAX;
  const auto longest = std::max_element(
      members_.begin(), members_.end(),
      [&](const Member& a, const Member& b) { return CallsOf(a).size() < CallsOf(b).size(); });
  for (const Member& member : members_) {
    const size_t size = std::min(CallsOf(member).size(), found);
    size_t i = 0;
    while (i < size && FitAt(*longest, member, i)) ++i;
    if (i < size) found = i;
  }
  return found;
}

std::vector<Class> CommView::ClassesAt(size_t index) const {
  std::vector<Class> classes;
  for (const Member& member : members_) {
    if (CallsOf(member).size() <= index) continue;
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

Finding CommView::Begin(Kind kind, size_t index) const {
  Finding finding;
  finding.kind = kind;
  finding.comm = job_.NameOf(communicator_);
  finding.members = job_.RanksOf(communicator_);
  finding.number = NumberAt(index);
  if (index > 0) {
    const Member& member = members_.front();
    const Call& call = CallAt(member, index - 1);
    finding.agreed = SideOf(job_, member, call);
    finding.agreed->ranks = Numbers(members_);
  }
  return finding;
}

void CommView::AddWaiting(Finding& finding) const {
  for (const Member& member : members_) {
    const uint32_t rank = job_.NumberOf(member);
    if (std::find(finding.blamed.begin(), finding.blamed.end(), rank) == finding.blamed.end())
      finding.waiting.push_back(rank);
  }
  std::sort(finding.waiting.begin(), finding.waiting.end());
  finding.waiting.erase(std::unique(finding.waiting.begin(), finding.waiting.end()),
                        finding.waiting.end());
}

Side CommView::SideOfClass(const Class& one, size_t index) const {
  Side side = SideOf(job_, one.First(), CallAt(one.First(), index));
  side.ranks = Numbers(one.members);
  return side;
}

}  // namespace deja::check
