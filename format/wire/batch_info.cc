#include "format/wire/batch_info.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace deja::format {
namespace {

// Makes the range of `key` hold [first, last], too.
template <typename Range>
void Extend(std::vector<Range>& ranges, std::unordered_map<uint32_t, size_t>& at, uint32_t key,
            uint64_t first, uint64_t last) {
  const auto [found, is_new] = at.try_emplace(key, ranges.size());
  if (is_new) {
    ranges.push_back({key, first, last});
    return;
  }
  Range& range = ranges[found->second];
  range.first_seq = std::min(range.first_seq, first);
  range.last_seq = std::max(range.last_seq, last);
}

}  // namespace

uint64_t KindsOf(const BatchInfo& batch) {
  constexpr uint64_t kAbove = ~uint64_t{0} << kLastKindBit;
  const uint64_t below = batch.kinds & ~kAbove;
  if ((batch.kinds & kAbove) == 0) return below;
  const uint64_t last = batch.more_kinds >> kLastKindBit;
  return below | uint64_t{batch.more_kinds} << kLastKindBit | last << 63;
}

void BatchSummary::Add(const Event& event, uint32_t body_field) {
  info_.first_time_ns = events_ == 0 ? event.time_ns : std::min(info_.first_time_ns, event.time_ns);
  info_.last_time_ns = std::max(info_.last_time_ns, event.time_ns);
  ++events_;
  Extend(info_.threads, thread_at_, event.thread, event.seq, event.seq);
  info_.kinds |= uint32_t{1} << std::min(body_field, kLastKindBit);
  if (body_field >= kLastKindBit)
    info_.more_kinds |= uint32_t{1} << std::min(body_field - kLastKindBit, kLastKindBit);
  if (const auto* enter = event.As<CallEnter>()) {
    if (enter->comm_seq != 0)
      Extend(info_.comms, comm_at_, enter->comm, enter->comm_seq, enter->comm_seq);
  } else if (const auto* results = event.As<CallResults>()) {
    if (results->comm != 0 && results->comm_seq != 0)
      Extend(info_.comms, comm_at_, results->comm, results->comm_seq, results->comm_seq);
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

void BlockSummary::Add(const BatchInfo& batch) {
  BatchInfo& all = block_.all;
  const bool is_first = block_.batches++ == 0;
  if (is_first) {
    all.offset = batch.offset;
    all.first_time_ns = batch.first_time_ns;
    block_.steps_ascend = true;
  }
  all.size = batch.offset + batch.size - all.offset;
  all.first_time_ns = std::min(all.first_time_ns, batch.first_time_ns);
  all.last_time_ns = std::max(all.last_time_ns, batch.last_time_ns);
  for (const ThreadRange& range : batch.threads)
    Extend(all.threads, thread_at_, range.thread, range.first_seq, range.last_seq);
  for (const CommRange& range : batch.comms)
    Extend(all.comms, comm_at_, range.comm, range.first_seq, range.last_seq);
  const bool kinds_are_known = (batch.kinds >> kLastKindBit) == 0 || batch.more_kinds != 0;
  all.kinds |= batch.kinds;
  all.more_kinds |= kinds_are_known ? batch.more_kinds : ~uint32_t{0};
  for (const uint64_t step : batch.steps) {
    if (block_.steps++ == 0) {
      block_.least_step = block_.greatest_step = step;
    } else {
      block_.steps_ascend = block_.steps_ascend && step >= last_step_;
    }
    last_step_ = step;
    block_.least_step = std::min(block_.least_step, step);
    block_.greatest_step = std::max(block_.greatest_step, step);
  }
}

BatchBlock BlockSummary::Take(uint64_t offset) {
  BatchBlock block = std::exchange(block_, BatchBlock{});
  block.offset = offset;
  thread_at_.clear();
  comm_at_.clear();
  return block;
}

}  // namespace deja::format
