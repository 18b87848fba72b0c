#include "format/batch_info.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace deja::format {
namespace {

template <typename Range>
void Extend(std::vector<Range>& ranges, std::unordered_map<uint32_t, size_t>& at, uint32_t key,
            uint64_t seq) {
  const auto [found, is_new] = at.try_emplace(key, ranges.size());
  if (is_new) {
    ranges.push_back({key, seq, seq});
    return;
  }
  Range& range = ranges[found->second];
  range.first_seq = std::min(range.first_seq, seq);
  range.last_seq = std::max(range.last_seq, seq);
}

}  // namespace

void BatchSummary::Add(const Event& event, uint32_t body_field) {
  info_.first_time_ns = events_ == 0 ? event.time_ns : std::min(info_.first_time_ns, event.time_ns);
  info_.last_time_ns = std::max(info_.last_time_ns, event.time_ns);
  ++events_;
  Extend(info_.threads, thread_at_, event.thread, event.seq);
  info_.kinds |= uint32_t{1} << std::min(body_field, kLastKindBit);
  if (const auto* enter = event.As<CallEnter>()) {
    if (enter->comm_seq != 0) Extend(info_.comms, comm_at_, enter->comm, enter->comm_seq);
  } else if (const auto* results = event.As<CallResults>()) {
    if (results->comm != 0 && results->comm_seq != 0)
      Extend(info_.comms, comm_at_, results->comm, results->comm_seq);
  } else if (const auto* step = event.As<Step>()) {
    info_.steps.push_back(step->step);
  }
}

BatchInfo BatchSummary::Take(uint64_t offset, uint64_t size) {
  BatchInfo info = std::exchange(info_, BatchInfo{});
  info.offset = offset;
  info.size = size;
  events_ = 0;
  thread_at_.clear();
  comm_at_.clear();
  return info;
}

}  // namespace deja::format
