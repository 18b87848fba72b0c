#include "format/reader/batch_list.h"

#include <algorithm>
#include <mutex>
#include <span>
#include <utility>

#include "format/wire/batch_info.h"
#include "format/wire/message_codec.h"

namespace deja::format {
namespace {

bool HasRange(const BatchInfo& batch, uint32_t comm, uint64_t seq) {
  return std::any_of(batch.comms.begin(), batch.comms.end(), [&](const CommRange& range) {
    return range.comm == comm && range.first_seq <= seq && seq <= range.last_seq;
  });
}

uint64_t EndOf(const BatchInfo& batch) {
  return batch.offset + batch.size;
}

// Within [from, to) of the file, without overflow.
bool IsWithin(const BatchInfo& batch, uint64_t from, uint64_t to) {
  return batch.offset >= from && batch.offset <= to && batch.size >= kFrameHeaderBytes &&
         batch.size <= to - batch.offset;
}

}  // namespace

bool BatchList::SetBlocks(const ReadFile& file, std::vector<BatchBlock> blocks, uint64_t from,
                          uint64_t to, size_t budget) {
  auto by_need = std::make_unique<ByNeed>(file);
  by_need->budget = budget;
  uint64_t batches_from = kMagicBytes;
  for (BatchBlock& block : blocks) {
    if (block.offset < from || block.offset >= to || block.batches == 0) return false;
    from = block.offset + kFrameHeaderBytes;
    // Their frames lie before the index, one after the other.
    if (!IsWithin(block.all, batches_from, blocks.front().offset) ||
        block.batches > block.all.size / kFrameHeaderBytes) {
      return false;
    }
    batches_from = EndOf(block.all);
    Block& added = by_need->blocks.emplace_back();
    added.first = by_need->size;
    by_need->size += block.batches;
    added.facts = std::move(block);
  }
  in_memory_.clear();
  by_need_ = std::move(by_need);
  return true;
}

BatchList::Block& BatchList::BlockOf(size_t batch) const {
  auto& blocks = by_need_->blocks;
  const auto behind =
      std::upper_bound(blocks.begin(), blocks.end(), batch,
                       [](size_t wanted, const Block& block) { return wanted < block.first; });
  return *std::prev(behind);
}

const BatchInfo& BatchList::operator[](size_t batch) const {
  if (by_need_ == nullptr) return in_memory_[batch];
  Block& block = BlockOf(batch);
  const std::lock_guard<FutexMutex> lock(by_need_->mutex);
  if (!block.is_read) Read(*by_need_, block);
  return block.batches[batch - block.first];
}

const BatchBlock* BatchList::BlockAt(size_t batch, size_t& end) const {
  if (by_need_ == nullptr || batch >= size()) return nullptr;
  const Block& block = BlockOf(batch);
  if (block.first != batch) return nullptr;
  end = batch + block.facts.batches;
  return &block.facts;
}

size_t BatchList::Find(size_t from, size_t end, const MayHold& may_hold, const Holds& holds) const {
  end = std::min(end, size());
  while (from < end) {
    size_t behind = from + 1;
    const BatchBlock* block = BlockAt(from, behind);
    if (block != nullptr && !may_hold(*block)) {
      from = std::min(behind, end);
      continue;
    }
    if (holds((*this)[from])) return from;
    ++from;
  }
  return end;
}

size_t BatchList::FindLast(size_t end, const MayHold& may_hold, const Holds& holds) const {
  end = std::min(end, size());
  while (end > 0) {
    if (by_need_ != nullptr) {
      const Block& block = BlockOf(end - 1);
      if (!may_hold(block.facts)) {
        end = block.first;
        continue;
      }
    }
    if (holds((*this)[--end])) return end;
  }
  return size();
}

size_t BatchList::FindKinds(size_t from, size_t end, uint64_t kinds) const {
  return Find(
      from, end, [&](const BatchBlock& block) { return (KindsOf(block.all) & kinds) != 0; },
      [&](const BatchInfo& batch) { return batch.size == 0 || (KindsOf(batch) & kinds) != 0; });
}

size_t BatchList::FindStep(uint64_t step) const {
  return Find(
      0, size(),
      [&](const BatchBlock& block) {
        return block.steps != 0 && block.least_step <= step && step <= block.greatest_step;
      },
      [&](const BatchInfo& batch) {
        return std::find(batch.steps.begin(), batch.steps.end(), step) != batch.steps.end();
      });
}

size_t BatchList::FindOperation(uint32_t comm, uint64_t seq) const {
  return Find(
      0, size(), [&](const BatchBlock& block) { return HasRange(block.all, comm, seq); },
      [&](const BatchInfo& batch) { return HasRange(batch, comm, seq); });
}

// ---- Reading a block

void BatchList::Read(ByNeed& by_need, Block& block) {
  if (!TakeIndexed(by_need, block)) Scan(by_need, block);
  block.is_read = true;
}

bool BatchList::TakeIndexed(ByNeed& by_need, Block& block) {
  const FrameResult frame = by_need.reader.ReadAt(block.facts.offset, by_need.payload);
  Index index;
  if (frame.outcome != FrameOutcome::kRecord || frame.type != FrameType::kIndex ||
      !DecodeWithin(by_need.payload, index, by_need.budget) ||
      index.batches.size() != block.facts.batches) {
    return false;
  }
  uint64_t from = block.facts.all.offset;
  for (const BatchInfo& batch : index.batches) {
    if (!IsWithin(batch, from, EndOf(block.facts.all))) return false;
    from = EndOf(batch);
  }
  block.batches = std::move(index.batches);
  return true;
}

void BatchList::Scan(ByNeed& by_need, Block& block) {
  const uint64_t end = EndOf(block.facts.all);
  std::vector<BatchInfo>& batches = block.batches;
  by_need.reader.Seek(block.facts.all.offset);
  while (by_need.reader.position() < end && batches.size() < block.facts.batches) {
    const FrameResult frame = by_need.reader.Next(by_need.payload);
    if (frame.outcome == FrameOutcome::kTornTail || frame.outcome == FrameOutcome::kCleanEnd) break;
    if (frame.outcome != FrameOutcome::kRecord || frame.type != FrameType::kEvents) continue;
    BatchSummary summary;
    WireReader in_batch(by_need.payload);
    std::span<const std::byte> encoded;
    Event event;
    uint32_t body_field = 0;
    while (NextInBatch(in_batch, encoded) && DecodeEvent(encoded, event, &body_field))
      summary.Add(event, body_field);
    batches.push_back(summary.Take(frame.offset, frame.size));
  }
  // For each one that is damaged, too, something that cannot be read as events, so that whoever
  // reads them says so.
  BatchInfo damaged = block.facts.all;
  damaged.offset = block.facts.offset;
  damaged.size = kFrameHeaderBytes;
  damaged.threads.clear();
  damaged.comms.clear();
  batches.resize(block.facts.batches, damaged);
}

}  // namespace deja::format
