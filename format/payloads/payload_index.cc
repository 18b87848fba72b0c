#include "format/payloads/payload_index.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "format/wire/message_codec.h"

namespace deja::format {
namespace {

template <typename Row>
void SortRows(std::vector<Row>& rows) {
  std::stable_sort(rows.begin(), rows.end(),
                   [](const Row& a, const Row& b) { return a.hash < b.hash; });
}

template <typename Row>
auto FirstRowOf(const std::vector<Row>& rows, const Hash128& hash) {
  return std::lower_bound(rows.begin(), rows.end(), hash,
                          [](const Row& row, const Hash128& wanted) { return row.hash < wanted; });
}

}  // namespace

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
    const Block* kept = KeptBlock(block);
    if (kept == nullptr) return false;
    for (auto row = FirstRowOf(kept->rows, hash); row != kept->rows.end() && row->hash == hash;
         ++row)
      found.payloads.push_back({hash, row->total_size, {row->frame}, row->segment});
    for (auto row = FirstRowOf(kept->pieces, hash); row != kept->pieces.end() && row->hash == hash;
         ++row)
      found.pieces.push_back(
          {hash, row->total_size, {row->frame}, {row->start}, {row->size}, row->segment});
    const auto is_it = [&](const auto& info) { return info.hash == hash; };
    const Index& others = kept->others;
    std::copy_if(others.payloads.begin(), others.payloads.end(), std::back_inserter(found.payloads),
                 is_it);
    std::copy_if(others.pieces.begin(), others.pieces.end(), std::back_inserter(found.pieces),
                 is_it);
  }
  return true;
}

size_t PayloadIndex::BlockBehind(const Hash128& hash) const {
  // The last block that begins with it or before: it may go on after it.
  const auto at = std::upper_bound(
      blocks_.begin(), blocks_.end(), hash,
      [](const Hash128& wanted, const IndexBlock& block) { return wanted < block.first_hash; });
  return at == blocks_.begin() ? 0 : static_cast<size_t>(at - blocks_.begin()) - 1;
}

const PayloadIndex::Block* PayloadIndex::KeptBlock(size_t block) {
  if (read_[block] != nullptr) return read_[block].get();
  Index index;
  if (!ReadBlock(block, index)) return nullptr;
  auto kept = std::make_unique<Block>();
  kept->rows.reserve(index.payloads.size());
  kept->pieces.reserve(index.pieces.size());
  for (PayloadInfo& info : index.payloads) {
    if (info.chunk_offsets.size() == 1)
      kept->rows.push_back({info.hash, info.total_size, info.chunk_offsets[0], info.segment});
    else
      kept->others.payloads.push_back(std::move(info));
  }
  for (PayloadPieces& info : index.pieces) {
    if (info.chunk_offsets.size() == 1 && info.starts.size() == 1 && info.sizes.size() == 1)
      kept->pieces.push_back({{info.hash, info.total_size, info.chunk_offsets[0], info.segment},
                              info.starts[0],
                              info.sizes[0]});
    else
      kept->others.pieces.push_back(std::move(info));
  }
  SortRows(kept->rows);
  SortRows(kept->pieces);
  read_[block] = std::move(kept);
  return read_[block].get();
}

bool PayloadIndex::ReadBlock(size_t block, Index& index) {
  const FrameResult frame = reader_.ReadAt(blocks_[block].offset, payload_);
  if (frame.outcome != FrameOutcome::kRecord || frame.type != FrameType::kIndex ||
      !DecodeWithin(payload_, index, budget_) || !index.batches.empty()) {
    return false;
  }
  // What is elsewhere would not be found.
  const auto fits = [&](const auto& info) {
    return !(info.hash < blocks_[block].first_hash) &&
           (block + 1 == blocks_.size() || !(blocks_[block + 1].first_hash < info.hash));
  };
  return std::all_of(index.payloads.begin(), index.payloads.end(), fits) &&
         std::all_of(index.pieces.begin(), index.pieces.end(), fits);
}

}  // namespace deja::format
