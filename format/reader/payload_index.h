// PayloadIndex: the part of an index that lists payloads, read block by block as payloads are asked
// for.
//
// A long recording keeps very many payloads, of which a reader that wants its end needs few. What
// the index says is a hint: if a block is not what the footer says of it, the index is given up.
//
// Borrows the file. One thread at a time.
#ifndef DEJA_FORMAT_READER_PAYLOAD_INDEX_H_
#define DEJA_FORMAT_READER_PAYLOAD_INDEX_H_

#include <cstddef>
#include <cstdint>
#include <functional>
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

  // Where the frame behind the last block begins; 0: that block is damaged.
  uint64_t End();

  // Adds what the index says of `hash`. False: a block in which it may be is damaged.
  bool Find(const Hash128& hash, Index& found);
  // Hands out all of it, block by block. False: one is damaged, or the sink said that it cannot be.
  bool ReadAll(const std::function<bool(const Index&)>& sink);

 private:
  PayloadIndex(const ReadFile& file, std::vector<IndexBlock> blocks, size_t budget)
      : reader_(file), blocks_(std::move(blocks)), read_(blocks_.size()), budget_(budget) {}
  // What a block has, read once; null: it is damaged.
  const Index* Block(size_t block);

  FrameReader reader_;
  std::vector<IndexBlock> blocks_;
  std::vector<std::unique_ptr<Index>> read_;
  size_t budget_;
  std::vector<std::byte> payload_;
};

}  // namespace deja::format

#endif  // DEJA_FORMAT_READER_PAYLOAD_INDEX_H_
