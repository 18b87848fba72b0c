// resume: whether a run that was resumed goes on as the whole one did.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "check/compare.h"
#include "check/evidence/seen.h"
#include "check/matching/standing.h"

namespace deja::check {
namespace {

// What a rank had as one step of its first optimizer began.
struct Moment {
  const OptimizerSeen* optimizer = nullptr;
  std::vector<const BatchSeen*> batches;       // read since the step before
  std::map<std::string, uint64_t> generators;  // as they were seen last
};

std::vector<Moment> MomentsOf(const RankSummary& rank) {
  std::vector<Moment> moments;
  size_t batch = 0;
  size_t generator = 0;
  std::map<std::string, uint64_t> generators;
  for (const OptimizerSeen& one : rank.seen.optimizers) {
    if (one.optimizer != 0) continue;
    Moment moment;
    moment.optimizer = &one;
    const std::vector<BatchSeen>& batches = rank.seen.batches;
    while (batch < batches.size() && batches[batch].time_ns <= one.time_ns)
      moment.batches.push_back(&batches[batch++]);
    const std::vector<GeneratorSeen>& seen = rank.seen.generators;
    for (; generator < seen.size() && seen[generator].time_ns <= one.time_ns; ++generator)
      generators[seen[generator].name] = seen[generator].digest;
    moment.generators = generators;
    moments.push_back(std::move(moment));
  }
  return moments;
}

class ResumeMatcher {
 public:
  ResumeMatcher(const Job& whole, const Job& resumed) : whole_(whole), resumed_(resumed) {}

  Report Match() {
    for (const RankSummary& rank : resumed_.ranks) {
      const auto other =
          std::find_if(whole_.ranks.begin(), whole_.ranks.end(),
                       [&](const RankSummary& one) { return one.rank == rank.rank; });
      if (other != whole_.ranks.end()) MatchRank(*other, rank);
    }
    if (!report_.findings.empty()) {
      // The first one in steps; other ranks with the same thing are part of it.
      std::stable_sort(report_.findings.begin(), report_.findings.end(),
                       [](const Finding& a, const Finding& b) { return a.step < b.step; });
      Finding first = report_.findings.front();
      for (size_t i = 1; i < report_.findings.size(); ++i) {
        const Finding& other = report_.findings[i];
        if (other.step == first.step && other.comm == first.comm)
          first.blamed.insert(first.blamed.end(), other.blamed.begin(), other.blamed.end());
        else
          first.consequences.push_back({other.kind, other.sentence});
      }
      std::sort(first.blamed.begin(), first.blamed.end());
      first.sides.front().ranks = first.blamed;
      first.comm.clear();
      first.sentence = RanksText(first.blamed) + ": " + first.sentence;
      report_.findings = {first};
    }
    return std::move(report_);
  }

 private:
  void MatchRank(const RankSummary& whole, const RankSummary& resumed) {
    const std::vector<Moment> before = MomentsOf(whole);
    const std::vector<Moment> after = MomentsOf(resumed);
    if (before.empty() || after.empty()) {
      report_.notes.push_back(
          fmt::format("rank {}: no step of an optimizer is seen in {}, so nothing can be aligned",
                      resumed.rank, before.empty() ? "the whole run" : "the resumed run"));
      return;
    }
    used_ = UsedGenerators(whole.seen.generators);
    used_.merge(UsedGenerators(resumed.seen.generators));
    const auto start = std::find_if(before.begin(), before.end(), [&](const Moment& moment) {
      return moment.optimizer->weights == after.front().optimizer->weights &&
             moment.optimizer->weights != kUnknownDigest;
    });
    if (start == before.end()) return OnOtherWeights(before, after, resumed);
    for (const Moment& moment : after) {
      const uint64_t step =
          start->optimizer->step + moment.optimizer->step - after.front().optimizer->step;
      const auto same = std::find_if(before.begin(), before.end(), [&](const Moment& one) {
        return one.optimizer->step == step;
      });
      if (same != before.end() && Differs(before, *same, moment, resumed)) return;
    }
  }

  void OnOtherWeights(const std::vector<Moment>& before, const std::vector<Moment>& after,
                      const RankSummary& rank) {
    const uint64_t last = before.back().optimizer->step;
    if (last > before.size()) {
      report_.notes.push_back(fmt::format(
          "rank {}: the resumed run begins with parameters of no step that is seen of the whole "
          "run; record both with --state-digests 1",
          rank.rank));
      return;
    }
    Add("weights", after.front(), rank, 0,
        fmt::format("the resumed run begins with parameters that the whole run has at none of its "
                    "{} steps",
                    last));
  }

  bool Differs(const std::vector<Moment>& before, const Moment& whole, const Moment& resumed,
               const RankSummary& rank) {
    const OptimizerSeen& a = *whole.optimizer;
    const OptimizerSeen& b = *resumed.optimizer;
    const std::string where = fmt::format(
        "at step {} of the whole run, which is step {} of the "
        "resumed one,",
        a.step, b.step);
    if (a.state != b.state && a.state != kUnknownDigest && b.state != kUnknownDigest)
      return Add("state", resumed, rank, a.step,
                 fmt::format("{} the state of {} (moments, counters) is another one: it was not "
                             "restored",
                             where, a.kind));
    if (a.learning_rate != b.learning_rate)
      return Add("lr", resumed, rank, a.step,
                 fmt::format("{} the learning rate is {} instead of {}", where, b.learning_rate,
                             a.learning_rate));
    if (OtherBatches(before, whole, resumed, rank, where)) return true;
    for (const auto& [name, digest] : whole.generators) {
      const auto other = resumed.generators.find(name);
      // The step of the optimizer that a run begins with has no states of its own.
      if (other == resumed.generators.end() || other->second == digest) continue;
      if (!used_.contains(name)) continue;
      return Add("rng", resumed, rank, a.step,
                 fmt::format("{} the state of the generator {} is another one", where, name));
    }
    if (a.weights != b.weights && a.weights != kUnknownDigest && b.weights != kUnknownDigest)
      return Add("weights", resumed, rank, a.step,
                 fmt::format("{} the parameters are others", where));
    if (a.gradients != b.gradients && a.gradients != kUnknownDigest &&
        b.gradients != kUnknownDigest)
      return Add("gradients", resumed, rank, a.step,
                 fmt::format("{} the gradients are others", where));
    return false;
  }

  bool OtherBatches(const std::vector<Moment>& before, const Moment& whole, const Moment& resumed,
                    const RankSummary& rank, const std::string& where) {
    if (whole.batches.empty() || resumed.batches.empty()) return false;
    // A resumed run may skip through the data before its first step.
    const BatchSeen& a = *whole.batches.back();
    const BatchSeen& b = *resumed.batches.back();
    const bool known = a.digest != kUnknownDigest && b.digest != kUnknownDigest;
    if (known ? a.digest == b.digest : a.rows == b.rows) return false;
    std::string position;
    for (const Moment& moment : before)
      for (const BatchSeen* batch : moment.batches)
        if (known && batch->digest == b.digest)
          position = fmt::format(
              ": it is the one that the whole run read before step {} (batch {} "
              "of pass {})",
              moment.optimizer->step, batch->batch, batch->pass + 1);
    if (position.empty())
      position = ": the whole run has read it nowhere (another permutation, or other data)";
    return Add("batch", resumed, rank, whole.optimizer->step,
               fmt::format("{} another batch was read{}", where, position), b.at);
  }

  bool Add(const char* what, const Moment& moment, const RankSummary& rank, uint64_t step,
           std::string sentence, uint32_t site = kNoSite) {
    Finding finding;
    finding.kind = Kind::kResume;
    finding.comm = what;  // until the ranks are put together
    finding.step = step;
    finding.blamed = {rank.rank};
    finding.time_ns = moment.optimizer->time_ns;
    finding.sentence = std::move(sentence);
    Side side;
    side.ranks = finding.blamed;
    side.what = "in the resumed run";
    side.site = resumed_.sites[site != kNoSite ? site : moment.optimizer->at];
    finding.sides = {side};
    finding.next = {fmt::format("show RUN --rank {} --kind note,step", rank.rank)};
    report_.findings.push_back(std::move(finding));
    return true;
  }

  const Job& whole_;
  const Job& resumed_;
  std::set<std::string> used_;  // generators, by either run of the rank
  Report report_;
};

}  // namespace

Report CompareResumed(const Job& whole, const Job& resumed) {
  return ResumeMatcher(whole, resumed).Match();
}

}  // namespace deja::check
