#include "format/trace/payload_uses.h"

#include <algorithm>
#include <unordered_map>

namespace deja::format {
namespace {

class UseFinder {
 public:
  UseFinder(const RankReader& reader, const std::function<bool(Period)>& wanted)
      : reader_(reader), wanted_(wanted), has_steps_(reader.totals().steps != 0) {}

  std::vector<PayloadUse> Find() {
    const std::unique_ptr<EventCursor> cursor = reader_.Events();
    size_t batch = 0;
    while (const Event* event = cursor->Next()) {
      if (cursor->batch_number() != batch) EndBatch();
      batch = cursor->batch_number();
      Add(*event);
    }
    EndBatch();
    std::stable_sort(uses_.begin(), uses_.end(),
                     [](const PayloadUse& a, const PayloadUse& b) { return a.period > b.period; });
    return std::move(uses_);
  }

 private:
  // An event of a batch that matters: it begins a step, or needs a payload.
  struct Moment {
    uint64_t time_ns = 0;
    bool is_step = false;
    PayloadUse use;
  };

  void Add(const Event& event) {
    const Period part = ++events_ * kParts / (reader_.totals().events + 1);
    if (const auto* step = event.As<Step>()) {
      moments_.push_back({event.time_ns, true, {{}, std::min(step->step, kStart - 1)}});
    }
    ForEachPayload(event, [&](const PayloadReference& payload) {
      const Period period = payload.is_input ? kInputs : has_steps_ ? kStart : part;
      moments_.push_back({event.time_ns, false, {payload.hash, period}});
    });
  }

  // Within a batch events stand thread by thread; the step is that of the time.
  void EndBatch() {
    std::stable_sort(moments_.begin(), moments_.end(),
                     [](const Moment& a, const Moment& b) { return a.time_ns < b.time_ns; });
    for (Moment& moment : moments_) {
      if (moment.is_step) {
        step_ = moment.use.period;
        continue;
      }
      if (has_steps_ && moment.use.period == kStart) moment.use.period = step_;
      if (!wanted_(moment.use.period)) continue;
      const auto [at, is_new] = at_.try_emplace(moment.use.hash, uses_.size());
      if (is_new) {
        uses_.push_back(moment.use);
      } else {
        uses_[at->second].period = std::max(uses_[at->second].period, moment.use.period);
      }
    }
    moments_.clear();
  }

  const RankReader& reader_;
  const std::function<bool(Period)>& wanted_;
  const bool has_steps_;
  Period step_ = kStart;
  uint64_t events_ = 0;
  std::vector<Moment> moments_;
  std::vector<PayloadUse> uses_;
  std::unordered_map<Hash128, size_t, HashOfHash> at_;
};

}  // namespace

std::vector<PayloadUse> FindPayloadUses(const RankReader& reader,
                                        const std::function<bool(Period)>& wanted) {
  return UseFinder(reader, wanted).Find();
}

}  // namespace deja::format
