#include "format/reader/payload_index.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "format/wire/message_codec.h"

namespace deja::format {

std::unique_ptr<PayloadIndex> PayloadIndex::Make(const ReadFile& file,
                                                 std::vector<IndexBlock> blocks, uint64_t from,
                                                 uint64_t to, size_t budget) {
  for (size_t i = 0; i < blocks.size(); ++i) {
    const uint64_t least = i == 0 ? from : blocks[i - 1].offset + kFrameHeaderBytes;
    if (blocks[i].offset < least || blocks[i].offset >= to) return nullptr;
    if (i > 0 && blocks[i].first_hash < blocks[i - 1].first_hash) return nullptr;
  }
  return std::unique_ptr<PayloadIndex>(new PayloadIndex(file, std::move(blocks), budget));
}

uint64_t PayloadIndex::End() {
  const FrameResult last = reader_.ReadAt(blocks_.back().offset, payload_);
  return last.outcome == FrameOutcome::kRecord ? last.offset + last.size : 0;
}

bool PayloadIndex::Find(const Hash128& hash, Index& found) {
  // The last block that begins before it, and those that begin with it.
  const auto at = std::lower_bound(
      blocks_.begin(), blocks_.end(), hash,
      [](const IndexBlock& block, const Hash128& wanted) { return block.first_hash < wanted; });
  auto block = static_cast<size_t>(at - blocks_.begin());
  if (block > 0) --block;
  for (; block < blocks_.size() && !(hash < blocks_[block].first_hash); ++block) {
    const Index* index = Block(block);
    if (index == nullptr) return false;
    const auto is_it = [&](const auto& info) { return info.hash == hash; };
    std::copy_if(index->payloads.begin(), index->payloads.end(), std::back_inserter(found.payloads),
                 is_it);
    std::copy_if(index->pieces.begin(), index->pieces.end(), std::back_inserter(found.pieces),
                 is_it);
  }
  return true;
}

bool PayloadIndex::ReadAll(const std::function<bool(const Index&)>& sink) {
  for (size_t block = 0; block < blocks_.size(); ++block) {
    const Index* index = Block(block);
    if (index == nullptr || !sink(*index)) return false;
    read_[block] = nullptr;
  }
  return true;
}

const Index* PayloadIndex::Block(size_t block) {
  if (read_[block] != nullptr) return read_[block].get();
  const FrameResult frame = reader_.ReadAt(blocks_[block].offset, payload_);
  auto index = std::make_unique<Index>();
  if (frame.outcome != FrameOutcome::kRecord || frame.type != FrameType::kIndex ||
      !DecodeWithin(payload_, *index, budget_) || !index->batches.empty()) {
    return nullptr;
  }
  // What is elsewhere would not be found.
  const auto fits = [&](const auto& info) {
    return !(info.hash < blocks_[block].first_hash) &&
           (block + 1 == blocks_.size() || !(blocks_[block + 1].first_hash < info.hash));
  };
  if (!std::all_of(index->payloads.begin(), index->payloads.end(), fits) ||
      !std::all_of(index->pieces.begin(), index->pieces.end(), fits)) {
    return nullptr;
  }
  read_[block] = std::move(index);
  return read_[block].get();
}

}  // namespace deja::format
