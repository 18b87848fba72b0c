// replica: parameters and gradients of replicas at steps of their optimizers.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "check/findings/matchers.h"
#include "check/matching/standing.h"

namespace deja::check {
namespace {

// One parameter as a step begins, on the ranks of a group.
struct Row {
  std::vector<const WeightSeen*> ranks;  // in the order of the group
};

using Steps = std::map<uint64_t, std::map<std::string, Row>>;  // by step, name

bool IsKnown(uint64_t digest) {
  return digest != kUnknownDigest && digest != kNoGradient;
}

bool AllKnown(const Row& row, uint64_t WeightSeen::*digest) {
  return std::all_of(row.ranks.begin(), row.ranks.end(),
                     [&](const WeightSeen* one) { return IsKnown(one->*digest); });
}

bool AllEqual(const Row& row, uint64_t WeightSeen::*digest) {
  return std::all_of(row.ranks.begin(), row.ranks.end(), [&](const WeightSeen* one) {
    return one->*digest == row.ranks.front()->*digest;
  });
}

// Why the replicas of one parameter are none.
enum class Fault : uint8_t { kNone, kStart, kGradient, kWeight };

class GroupMatcher {
 public:
  GroupMatcher(const Job& job, std::vector<size_t> group, uint32_t optimizer)
      : job_(job), group_(std::move(group)), optimizer_(optimizer) {
    for (size_t i = 0; i < group_.size(); ++i) {
      numbers_.push_back(job.ranks[group_[i]].rank);
      for (const WeightSeen& weight : job.ranks[group_[i]].seen.weights) {
        if (weight.optimizer != optimizer) continue;
        Row& row = steps_[weight.step][weight.name];
        // Once a rank, and of all of them: else it is not compared.
        if (row.ranks.size() == i) row.ranks.push_back(&weight);
      }
    }
  }

  // The first step at which something is wrong, if there is one.
  std::optional<Finding> Match() const {
    if (steps_.empty()) return std::nullopt;
    for (const auto& [step, rows] : steps_) {
      std::vector<std::pair<const std::string*, const Row*>> wrong;
      Fault fault = Fault::kNone;
      for (const auto& [name, row] : rows) {
        if (row.ranks.size() != group_.size()) continue;
        const Fault its = FaultOf(name, row, rows);
        if (its == Fault::kNone || (fault != Fault::kNone && its != fault)) continue;
        fault = its;
        wrong.emplace_back(&name, &row);
      }
      if (!wrong.empty()) return Made(step, rows.size(), wrong, fault);
    }
    return std::nullopt;
  }

 private:
  // The framework of all ranks says that this group keeps it equal.
  bool IsKeptEqual(const Row& row) const {
    return std::all_of(row.ranks.begin(), row.ranks.end(), [&](const WeightSeen* one) {
      return std::equal(one->replicas.begin(), one->replicas.end(), numbers_.begin(),
                        numbers_.end());
    });
  }

  Fault FaultOf(const std::string& name, const Row& row,
                const std::map<std::string, Row>& rows) const {
    const bool weights_known = AllKnown(row, &WeightSeen::weight);
    const bool weights_differ = weights_known && !AllEqual(row, &WeightSeen::weight);
    const bool gradients_known = AllKnown(row, &WeightSeen::gradient);
    const bool gradients_equal = gradients_known && AllEqual(row, &WeightSeen::gradient);
    // One gradient for parameters that are not one.
    if (weights_differ && gradients_equal && row.ranks.front()->gradient != 0) return Fault::kStart;
    if (IsKeptEqual(row)) {
      if (weights_differ) return Fault::kWeight;
      return gradients_known && !gradients_equal ? Fault::kGradient : Fault::kNone;
    }
    if (weights_differ && WasEqual(name) && MostAgree(rows)) return Fault::kWeight;
    return Fault::kNone;
  }

  bool WasEqual(const std::string& name) const {
    const auto& first = steps_.begin()->second;
    const auto row = first.find(name);
    return row != first.end() && row->second.ranks.size() == group_.size() &&
           AllKnown(row->second, &WeightSeen::weight) && AllEqual(row->second, &WeightSeen::weight);
  }

  // Most of the parameters have changed, and in the same way on all ranks: they are replicas.
  bool MostAgree(const std::map<std::string, Row>& rows) const {
    size_t agree = 0;
    size_t differ = 0;
    for (const auto& [name, row] : rows) {
      if (row.ranks.size() != group_.size() || !AllKnown(row, &WeightSeen::weight)) continue;
      if (!AllEqual(row, &WeightSeen::weight)) {
        ++differ;
        continue;
      }
      const auto& first = steps_.begin()->second;
      const auto before = first.find(name);
      agree += before != first.end() && !before->second.ranks.empty() &&
               before->second.ranks.front()->weight != row.ranks.front()->weight;
    }
    return agree != 0 && agree >= differ;
  }

  Finding Made(uint64_t step, size_t parameters,
               const std::vector<std::pair<const std::string*, const Row*>>& wrong,
               Fault fault) const {
    const std::string& name = *wrong.front().first;
    const Row& row = *wrong.front().second;
    const auto digest = fault == Fault::kGradient ? &WeightSeen::gradient : &WeightSeen::weight;
    std::map<uint64_t, std::vector<uint32_t>> values;
    for (size_t i = 0; i < row.ranks.size(); ++i)
      values[row.ranks[i]->*digest].push_back(numbers_[i]);
    const auto most = std::max_element(
        values.begin(), values.end(),
        [](const auto& a, const auto& b) { return a.second.size() < b.second.size(); });
    Finding finding;
    finding.kind = Kind::kReplica;
    finding.step = step;
    finding.time_ns = row.ranks.front()->time_ns;
    const bool has_majority = most->second.size() * 2 > row.ranks.size();
    for (const auto& [value, ranks] : values) {
      std::vector<uint32_t>& side =
          has_majority && value == most->first ? finding.waiting : finding.blamed;
      side.insert(side.end(), ranks.begin(), ranks.end());
      finding.evidence.push_back(fmt::format("{} of \"{}\": {:016x} on {}",
                                             fault == Fault::kGradient ? "gradient" : "parameter",
                                             name, value, RanksText(ranks)));
    }
    std::sort(finding.blamed.begin(), finding.blamed.end());
    finding.sentence = Sentence(step, name, parameters, wrong.size(), fault);
    AddSides(finding, row, fault);
    constexpr size_t kShown = 8;
    std::string names;
    for (size_t i = 0; i < wrong.size() && i < kShown; ++i)
      names += (i == 0 ? "" : ", ") + *wrong[i].first;
    if (wrong.size() > 1)
      finding.evidence.push_back(fmt::format("{} of {} parameters: {}{}", wrong.size(), parameters,
                                             names, wrong.size() > kShown ? ", …" : ""));
    finding.next = {
        fmt::format("show RUN --rank {} --kind note,step,enter --stacks", finding.blamed.front()),
        ReplayCommand(finding.blamed.front())};
    return finding;
  }

  std::string Sentence(uint64_t step, const std::string& name, size_t parameters, size_t count,
                       Fault fault) const {
    const std::string what =
        count == 1 ? fmt::format("parameter \"{}\"", name)
                   : fmt::format("{} of {} parameters, first \"{}\",", count, parameters, name);
    const std::string ranks = RanksText(numbers_);
    const char* differs = count == 1 ? "differs" : "differ";
    switch (fault) {
      case Fault::kStart:
        return fmt::format(
            "{} {} between {} before step {} of optimizer {}, while the gradient is the same: "
            "the replicas did not begin alike",
            what, differs, ranks, step, optimizer_);
      case Fault::kGradient:
        return fmt::format(
            "the gradient of {} is not the same on {} at step {} of optimizer {}: it was summed "
            "over them in no operation of this step",
            what, ranks, step, optimizer_);
      default:
        return fmt::format(
            "{} {} between {} before step {} of optimizer {}, and should be the same: {}", what,
            differs, ranks, step, optimizer_,
            "its gradients were not summed over all of them, or it was changed apart from them");
    }
  }

  void AddSides(Finding& finding, const Row& row, Fault fault) const {
    const auto index = [&](uint32_t number) {
      return static_cast<size_t>(std::find(numbers_.begin(), numbers_.end(), number) -
                                 numbers_.begin());
    };
    const char* what = fault == Fault::kGradient ? "the optimizer takes the gradient"
                                                 : "the optimizer begins its step";
    for (const std::vector<uint32_t>* ranks : {&finding.blamed, &finding.waiting}) {
      if (ranks->empty()) continue;
      Side side;
      side.ranks = *ranks;
      side.what = what;
      side.site = job_.sites[row.ranks[index(ranks->front())]->at];
      finding.sides.push_back(std::move(side));
    }
    const uint32_t made = row.ranks.front()->made;
    if (made == kNoSite) return;
    Side side;
    side.ranks = numbers_;
    side.what = "the module with the parameter was made";
    side.site = job_.sites[made];
    finding.sides.push_back(std::move(side));
  }

  const Job& job_;
  std::vector<size_t> group_;  // indices of ranks, ascending
  std::vector<uint32_t> numbers_;
  uint32_t optimizer_;
  Steps steps_;
};

}  // namespace

void MatchWeights(const Job& job, Found& found) {
  std::set<std::vector<size_t>> groups;
  for (const Communicator& communicator : job.communicators) {
    std::set<size_t> group;
    for (const Member& member : communicator.members) group.insert(member.rank);
    const bool whole = !communicator.is_ambiguous && communicator.IsWhole();
    if (whole && group.size() > 1) groups.insert({group.begin(), group.end()});
  }
  std::set<uint32_t> optimizers;
  for (const RankSummary& rank : job.ranks)
    for (const WeightSeen& weight : rank.seen.weights) optimizers.insert(weight.optimizer);
  std::optional<Finding> first;
  for (const std::vector<size_t>& group : groups) {
    for (const uint32_t optimizer : optimizers) {
      std::optional<Finding> finding = GroupMatcher(job, group, optimizer).Match();
      if (finding && (!first || finding->time_ns < first->time_ns)) first = std::move(finding);
    }
  }
  if (first) found.findings.push_back(std::move(*first));
}

}  // namespace deja::check
