// PayloadIndex: the part of an index that lists payloads, read block by block as payloads are asked
// for.
//
// A long recording keeps very many payloads, of which a reader that wants its end needs few. What
// the index says is a hint: if a block is not what the footer says of it, the index is given up.
//
// Borrows the file. One thread at a time. Memory: 40 bytes for each payload of a block that was
// asked for, 56 for a piece of one.
#ifndef DEJA_FORMAT_PAYLOADS_PAYLOAD_INDEX_H_
#define DEJA_FORMAT_PAYLOADS_PAYLOAD_INDEX_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "common/ids.h"
#include "common/os/file.h"
#include "format/wire/frame_reader.h"
#include "format/wire/messages.h"

namespace deja::format {

class PayloadIndex {
 public:
  // Null if the blocks are not in order, or not within [from, to) of the file. `budget`: as for
  // DecodeWithin, of all blocks together.
  static std::unique_ptr<PayloadIndex> Make(const ReadFile& file, std::vector<IndexBlock> blocks,
                                            uint64_t from, uint64_t to, size_t budget);

  // Where the frame after the last block begins; 0: that block is damaged.
  uint64_t End();

  // Adds what the index says of `hash`. False: a block in which it may be is damaged.
  bool Find(const Hash128& hash, Index& found);
  [[nodiscard]] size_t blocks() const { return blocks_.size(); }
  // The first block that may have hashes after `hash`.
  [[nodiscard]] size_t BlockBehind(const Hash128& hash) const;
  // The next block may have this hash, too.
  [[nodiscard]] bool GoesOn(size_t block, const Hash128& hash) const {
    return block + 1 < blocks_.size() && !(hash < blocks_[block + 1].first_hash);
  }
  // What a block has; nothing of it is kept. False: it is damaged.
  bool ReadBlock(size_t block, Index& index);

 private:
  // A payload of one chunk, as nearly all are.
  struct Row {
    Hash128 hash;
    uint64_t total_size = 0;
    uint64_t frame = 0;
    uint32_t segment = 0;
  };
  // The same of a piece of a payload.
  struct PieceRow : Row {
    uint64_t start = 0;
    uint64_t size = 0;
  };
  struct Block {
    std::vector<Row> rows;         // by hash
    std::vector<PieceRow> pieces;  // by hash
    Index others;
  };
  PayloadIndex(const ReadFile& file, std::vector<IndexBlock> blocks, size_t budget)
      : reader_(file), blocks_(std::move(blocks)), read_(blocks_.size()), budget_(budget) {}
  // What a block has, read once; null: it is damaged.
  const Block* KeptBlock(size_t block);

  FrameReader reader_;
  std::vector<IndexBlock> blocks_;
  std::vector<std::unique_ptr<Block>> read_;
  size_t budget_;
  std::vector<std::byte> payload_;
};

}  // namespace deja::format

#endif  // DEJA_FORMAT_PAYLOADS_PAYLOAD_INDEX_H_
