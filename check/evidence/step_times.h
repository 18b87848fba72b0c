// StepTimes: in which step of the training loop a rank was at a time.
//
// A value; one thread. Fast where times are asked for nearly in their order.
#ifndef DEJA_CHECK_EVIDENCE_STEP_TIMES_H_
#define DEJA_CHECK_EVIDENCE_STEP_TIMES_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "check/evidence/summary.h"

namespace deja::check {

class StepTimes {
 public:
  void Add(uint64_t time_ns, uint64_t step) { steps_.emplace_back(time_ns, step); }
  // To be called when all have been added, before what follows.
  void Settle() { std::sort(steps_.begin(), steps_.end()); }
  [[nodiscard]] uint64_t Last() const { return steps_.empty() ? kNoStep : steps_.back().second; }
  // kNoStep: before the first one.
  uint64_t At(uint64_t time_ns) {
    const auto has_begun = [&](size_t i) {
      return i < steps_.size() && steps_[i].first <= time_ns;
    };
    if (begun_ != 0 && !has_begun(begun_ - 1)) begun_ = 0;
    // Most calls are of the step of the one before, or of the next one.
    for (int tries = 0; tries < 2 && has_begun(begun_); ++tries) ++begun_;
    if (has_begun(begun_)) {
      const auto after =
          std::upper_bound(steps_.begin(), steps_.end(), time_ns,
                           [](uint64_t time, const std::pair<uint64_t, uint64_t>& step) {
                             return time < step.first;
                           });
      begun_ = static_cast<size_t>(after - steps_.begin());
    }
    return begun_ == 0 ? kNoStep : steps_[begun_ - 1].second;
  }

 private:
  std::vector<std::pair<uint64_t, uint64_t>> steps_;  // time, step
  size_t begun_ = 0;                                  // of them, at the time asked for last
};

}  // namespace deja::check

#endif  // DEJA_CHECK_EVIDENCE_STEP_TIMES_H_
