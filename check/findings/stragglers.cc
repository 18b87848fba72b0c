// straggler: a rank for which the others wait again and again.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "check/findings/matchers.h"
#include "check/matching/comm_view.h"
#include "check/matching/standing.h"

namespace deja::check {
namespace {

// What is waited in all to be worth a word, its part of the time, how often, and the part of one
// rank in it.
constexpr double kLeastSeconds = 1.0;
constexpr double kLeastPart = 0.25;
constexpr size_t kLeastTimes = 5;
constexpr double kLeastShare = 0.8;
// Ranks that are late by less are on time.
constexpr uint64_t kOnTimeNs = 20'000'000;

class StragglerMatcher {
 public:
  StragglerMatcher(const Job& job, const CommView& view, size_t comparable)
      : job_(job), view_(view), size_(comparable) {
    for (const Member& member : view.members()) {
      size_ = std::min(size_, view.CallsOf(member).size());
      begin_ = std::max(begin_, view.CallsOf(member).OwnFrom());
    }
    FindOffsets();
  }

  void Match(Found& found) {
    if (size_ < begin_ + 2 || view_.members().size() < 2) return;
    std::vector<uint64_t> lost(view_.members().size());
    std::vector<std::vector<size_t>> late(view_.members().size());
    // Ranks start when they do: the first operation is where they meet.
    for (size_t i = begin_ + 1; i < size_; ++i) {
      const Call& call = view_.CallAt(view_.members().front(), i);
      if (!WaitsForAll(job_.signatures[call.signature].operation)) continue;
      const auto [last, gap] = LastAt(i);
      if (gap < kOnTimeNs) continue;
      lost[last] += gap;
      late[last].push_back(i);
    }
    const auto worst =
        static_cast<size_t>(std::max_element(lost.begin(), lost.end()) - lost.begin());
    uint64_t all = 0;
    for (const uint64_t one : lost) all += one;
    const uint64_t span = Enters(0, size_ - 1) - Enters(0, begin_);
    const double seconds = static_cast<double>(lost[worst]) / 1e9;
    if (seconds < kLeastSeconds || late[worst].size() < kLeastTimes ||
        seconds < kLeastPart * static_cast<double>(span) / 1e9 ||
        static_cast<double>(lost[worst]) < kLeastShare * static_cast<double>(all))
      return;
    Add(worst, late[worst], seconds, static_cast<double>(span) / 1e9, found);
  }

 private:
  // Clocks of machines differ: all ranks leave such an operation at one time, or nearly.
  void FindOffsets() {
    offsets_.assign(view_.members().size(), 0);
    for (size_t m = 1; m < view_.members().size(); ++m) {
      std::vector<int64_t> differences;
      for (size_t i = begin_; i < size_ && differences.size() < 1000; ++i) {
        const Call& of_first = view_.CallAt(view_.members().front(), i);
        const Call& of_this = view_.CallAt(view_.members()[m], i);
        if (!WaitsForAll(job_.signatures[of_first.signature].operation) ||
            of_first.lasted_us == 0 || of_this.lasted_us == 0)
          continue;
        differences.push_back(static_cast<int64_t>(Left(of_this) - Left(of_first)));
      }
      if (differences.empty()) continue;
      const auto middle = differences.begin() + static_cast<std::ptrdiff_t>(differences.size() / 2);
      std::nth_element(differences.begin(), middle, differences.end());
      // One machine has one clock; what threads need to wake is no difference of clocks.
      constexpr int64_t kNoise = 50'000'000;
      offsets_[m] = std::abs(*middle) < kNoise ? 0 : *middle;
    }
  }
  static uint64_t Left(const Call& call) { return call.time_ns + call.lasted_us * uint64_t{1000}; }

  uint64_t Enters(size_t member, size_t index) const {
    return view_.CallAt(view_.members()[member], index).time_ns -
           static_cast<uint64_t>(offsets_[member]);
  }

  // The last one to enter, and how long the one before waited for it.
  std::pair<size_t, uint64_t> LastAt(size_t index) const {
    size_t last = 0;
    uint64_t latest = 0;
    uint64_t second = 0;
    for (size_t m = 0; m < view_.members().size(); ++m) {
      const uint64_t time = Enters(m, index);
      if (time >= latest) {
        second = latest;
        latest = time;
        last = m;
      } else {
        second = std::max(second, time);
      }
    }
    // An asynchronous operation is entered while the one before is under way.
    const uint64_t ready = std::max(second, LeftBefore(last, index));
    return {last, latest > ready ? latest - ready : 0};
  }
  // No rank can be late for an operation while it is in the one before.
  uint64_t LeftBefore(size_t member, size_t index) const {
    return Left(view_.CallAt(view_.members()[member], index - 1)) -
           static_cast<uint64_t>(offsets_[member]);
  }

  void Add(size_t worst, const std::vector<size_t>& late, double seconds, double span,
           Found& found) const {
    const Member& who = view_.members()[worst];
    Finding finding = view_.Begin(Kind::kStraggler, late.front());
    finding.agreed.reset();
    finding.blamed = {job_.NumberOf(who)};
    const Call& call = view_.CallAt(who, late.front());
    finding.step = call.step;
    finding.time_ns = call.time_ns;
    std::map<std::pair<uint32_t, uint32_t>, std::pair<size_t, size_t>> places;
    for (const size_t index : late) {
      auto& [count, example] =
          places[{view_.CallAt(who, index - 1).site, view_.CallAt(who, index).site}];
      ++count;
      example = index;
    }
    const auto most = std::max_element(
        places.begin(), places.end(),
        [](const auto& a, const auto& b) { return a.second.first < b.second.first; });
    finding.sentence = fmt::format(
        "the others waited {:.1f} s of {:.1f} s on {} for rank {}: it was the last one in {} of {} "
        "operations, most often between {}{} and{}",
        seconds, span, view_.Name(), finding.blamed.front(), late.size(), size_ - begin_ - 1,
        "the one", job_.AtSite(most->first.first), " that" + job_.AtSite(most->first.second));
    Side side = SideOf(job_, who, view_.CallAt(who, most->second.second));
    finding.sides = {side};
    view_.AddWaiting(finding);
    AddMeanwhile(who, late, finding);
    finding.next = {ShowCommand(side)};
    found.findings.push_back(std::move(finding));
  }

  // What the rank was seen to do while the others waited.
  void AddMeanwhile(const Member& who, const std::vector<size_t>& late, Finding& finding) const {
    const RankSummary& rank = job_.RankOf(who);
    uint64_t garbage = 0;
    std::map<std::string, size_t> reads;
    for (const size_t index : late) {
      const uint64_t begin = Left(view_.CallAt(who, index - 1));
      const uint64_t end = view_.CallAt(who, index).time_ns;
      for (const Interval& one : rank.seen.garbage)
        if (one.begin_ns >= begin && one.end_ns <= end) garbage += one.end_ns - one.begin_ns;
      for (const InputSeen& input : rank.seen.inputs)
        if (input.kind == InputKind::kFile && input.time_ns >= begin && input.time_ns <= end)
          ++reads[input.name];
    }
    if (garbage != 0)
      finding.evidence.push_back(
          fmt::format("meanwhile it collected garbage of Python's for {:.1f} s",
                      static_cast<double>(garbage) / 1e9));
    size_t shown = 0;
    for (const auto& [name, count] : reads)
      if (++shown <= 4)
        finding.evidence.push_back(fmt::format("meanwhile it read {} ({} times)", name, count));
  }

  const Job& job_;
  const CommView& view_;
  size_t begin_ = 0;  // the first one that all ranks have with their own times
  size_t size_;
  std::vector<int64_t> offsets_;  // by member, of its clock
};

}  // namespace

void MatchStragglers(const Job& job, Found& found) {
  for (size_t c = 0; c < job.communicators.size(); ++c) {
    if (job.communicators[c].is_ambiguous || !job.communicators[c].IsWhole()) continue;
    const CommView view(job, job.communicators[c]);
    if (!view.IsWhole()) continue;
    const size_t before = found.findings.size();
    StragglerMatcher(job, view, found.comparable[c]).Match(found);
    if (found.findings.size() != before) return;
  }
}

}  // namespace deja::check
