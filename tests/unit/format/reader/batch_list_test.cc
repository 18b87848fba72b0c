#include "format/reader/batch_list.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "format/reader/rank_reader.h"
#include "format/wire/batch_info.h"
#include "format/wire/frame_format.h"
#include "format/wire/frame_writer.h"
#include "format/wire/message_codec.h"
#include "tests/support/memory_append_file.h"
#include "tests/support/sample_trace.h"

namespace deja::format {
namespace {

using samples::MakeSampleRank;
using samples::SampleRank;

constexpr int kBatches = 400;  // an index of several blocks

// Counts which frames are read.
class CountedFile final : public ReadFile {
 public:
  CountedFile(std::vector<std::byte> bytes, std::vector<uint64_t>& read)
      : file_(MakeMemoryFile("events.deja", std::move(bytes))), read_(read) {}
  Result<size_t> ReadAt(uint64_t offset, std::span<std::byte> out) const override {
    read_.push_back(offset);
    return file_->ReadAt(offset, out);
  }
  [[nodiscard]] uint64_t size() const override { return file_->size(); }
  [[nodiscard]] const std::string& name() const override { return file_->name(); }

 private:
  std::unique_ptr<ReadFile> file_;
  std::vector<uint64_t>& read_;
};

class BatchListTest : public testing::Test {
 protected:
  std::unique_ptr<RankReader> Open(const SampleRank& rank) {
    const std::string folder = scratch_.path() + "/rank-00000";
    samples::WriteSampleRank(rank, folder);
    return RankReader::Open(folder).value();
  }
  static std::vector<std::string> Encoded(EventCursor& cursor) {
    std::vector<std::string> events;
    while (cursor.Next() != nullptr) events.emplace_back(AsText(cursor.encoded()));
    return events;
  }
  // The directory of a finished rank.
  std::vector<BatchBlock> Directory(const SampleRank& rank) {
    const uint64_t at = Open(rank)->totals().batch_directory;
    const auto file = MakeMemoryFile("events.deja", rank.events_file);
    FrameReader frames(*file);
    std::vector<std::byte> payload;
    Index index;
    EXPECT_EQ(frames.ReadAt(at, payload).type, FrameType::kIndex);
    EXPECT_TRUE(Decode(payload, index));
    return index.batch_blocks;
  }
  // Another directory behind the file, which counts.
  SampleRank WithDirectory(SampleRank rank, const std::vector<BatchBlock>& blocks) {
    Footer footer = Open(rank)->totals();
    FrameWriter writer(std::make_unique<MemoryAppendFile>(&rank.events_file));
    Index index;
    index.batch_blocks = blocks;
    footer.index_blocks.clear();
    footer.payloads = 0;
    footer.batch_directory =
        writer.Write(FrameType::kIndex, AsBytes(EncodeToString(index))).value();
    EXPECT_TRUE(writer.WriteFooter(footer));
    return rank;
  }
  // As many entries as the file has frames, whatever the index says.
  void ExpectScanned(const SampleRank& rank) {
    const auto reader = Open(rank);
    EXPECT_EQ(Encoded(*reader->Events()), rank.events);
    EXPECT_EQ(reader->batches().size(), static_cast<size_t>(kBatches));
  }

  samples::ScratchFolder scratch_;
};

TEST_F(BatchListTest, BlocksSayWhatAScanSays) {
  const auto scanned = Open(MakeSampleRank({.batches = kBatches, .finished = false}));
  const SampleRank rank = MakeSampleRank({.batches = kBatches});
  EXPECT_GT(Directory(rank).size(), 4u);
  const auto reader = Open(rank);
  const BatchList& batches = reader->batches();
  ASSERT_EQ(batches.size(), scanned->batches().size());
  for (size_t i = batches.size(); i-- > 0;)
    ASSERT_EQ(EncodeToString(batches[i]), EncodeToString(scanned->batches()[i])) << i;
  for (const BatchInfo& batch : batches) {
    for (const uint64_t step : batch.steps)
      EXPECT_EQ(batches.FindStep(step), scanned->batches().FindStep(step));
    for (const CommRange& range : batch.comms)
      EXPECT_EQ(batches.FindOperation(range.comm, range.last_seq),
                scanned->batches().FindOperation(range.comm, range.last_seq));
  }
  EXPECT_EQ(batches.FindStep(99), batches.size());
  EXPECT_EQ(Encoded(*reader->Events()), rank.events);
}

TEST_F(BatchListTest, ABlockIsWhatItsBatchesAreTogether) {
  const SampleRank rank = MakeSampleRank({.batches = kBatches});
  const auto reader = Open(rank);
  const BatchList& batches = reader->batches();
  size_t blocks = 0;
  for (size_t i = 0; i < batches.size(); ++blocks) {
    size_t end = i;
    const BatchBlock* block = batches.BlockAt(i, end);
    ASSERT_NE(block, nullptr) << i;
    BlockSummary summary;
    for (; i < end; ++i) summary.Add(batches[i]);
    EXPECT_EQ(EncodeToString(*block), EncodeToString(summary.Take(block->offset)));
    size_t none = 0;
    EXPECT_EQ(batches.BlockAt(end - 1, none) != nullptr, block->batches == 1);
  }
  EXPECT_EQ(blocks, Directory(rank).size());
}

TEST_F(BatchListTest, OnlyTheBlocksThatMayHoldItAreRead) {
  const SampleRank rank = MakeSampleRank({.batches = kBatches});
  const std::vector<BatchBlock> blocks = Directory(rank);
  const uint64_t directory = Open(rank)->totals().batch_directory;
  std::vector<uint64_t> read;
  const CountedFile file(rank.events_file, read);
  const auto read_blocks = [&](auto&& what) {
    BatchList list;
    EXPECT_TRUE(list.SetBlocks(file, blocks, blocks[0].offset, directory, 1 << 20));
    read.clear();
    what(list);
    return std::count_if(blocks.begin(), blocks.end(), [&](const BatchBlock& block) {
      return std::find(read.begin(), read.end(), block.offset) != read.end();
    });
  };
  EXPECT_EQ(read_blocks([&](const BatchList& list) {
              EXPECT_EQ(list.FindStep(blocks.back().least_step),
                        size_t{kBatches} - blocks.back().batches);
            }),
            1);
  EXPECT_EQ(read_blocks([&](const BatchList& list) { EXPECT_EQ(list.FindStep(7), list.size()); }),
            0);
  EXPECT_EQ(read_blocks([&](const BatchList& list) {
              EXPECT_EQ(list.FindKinds(0, list.size(), KindBit(EventKind::kCheckpoint)),
                        list.size());
            }),
            0);
  EXPECT_EQ(read_blocks([&](const BatchList& list) {
              EXPECT_EQ(list.FindLast(
                            list.size(), [](const BatchBlock& block) { return block.steps != 0; },
                            [](const BatchInfo& batch) { return !batch.steps.empty(); }),
                        list.size() - 1);
            }),
            1);
}

TEST_F(BatchListTest, ADamagedBlockIsMadeAgainFromItsBatches) {
  SampleRank rank = MakeSampleRank({.batches = kBatches});
  const std::vector<BatchBlock> blocks = Directory(rank);
  rank.events_file[blocks[2].offset + kFrameHeaderBytes + 3] ^= std::byte{1};
  const auto scanned = Open(MakeSampleRank({.batches = kBatches, .finished = false}));
  const auto reader = Open(rank);
  EXPECT_EQ(reader->end().state, EndState::kCleanEnd);
  for (size_t i = 0; i < reader->batches().size(); ++i)
    ASSERT_EQ(EncodeToString(reader->batches()[i]), EncodeToString(scanned->batches()[i])) << i;
  EXPECT_EQ(Encoded(*reader->Events()), rank.events);
  // And one of its batches, too: that is reported, and all others are there.
  const auto& batch = scanned->batches()[blocks[0].batches + blocks[1].batches + 3];
  rank.events_file[batch.offset + kFrameHeaderBytes + 5] ^= std::byte{1};
  const auto damaged = Open(rank);
  ASSERT_EQ(damaged->batches().size(), static_cast<size_t>(kBatches));
  const auto cursor = damaged->Events();
  EXPECT_EQ(Encoded(*cursor).size(), rank.events.size() * (kBatches - 1) / kBatches);
  EXPECT_EQ(cursor->damaged_batches(), 1u);
}

TEST_F(BatchListTest, ADirectoryThatCannotBeIsNotBelieved) {
  const SampleRank rank = MakeSampleRank({.batches = kBatches});
  const std::vector<BatchBlock> good = Directory(rank);
  EXPECT_EQ(Open(WithDirectory(rank, good))->batches().size(), static_cast<size_t>(kBatches));
  const auto changed = [&](auto&& change) {
    std::vector<BatchBlock> blocks = good;
    change(blocks);
    ExpectScanned(WithDirectory(rank, blocks));
  };
  changed([](auto& blocks) { std::swap(blocks[1], blocks[2]); });
  changed([](auto& blocks) { blocks[1].batches = UINT64_MAX; });
  changed([](auto& blocks) { blocks[1].batches = 0; });
  changed([](auto& blocks) { blocks[1].offset = UINT64_MAX; });
  changed([](auto& blocks) { blocks[0].offset = 0; });
  changed([](auto& blocks) { blocks.back().all.size = UINT64_MAX; });
  changed([](auto& blocks) { blocks[1].all.offset = blocks[0].all.offset; });
}

TEST(BatchKindsTest, TheLastKindsAreDistinguished) {
  BatchSummary summary;
  Event event;
  event.body = Checkpoint{};
  summary.Add(event, static_cast<uint32_t>(EventKind::kCheckpoint));
  BatchInfo batch = summary.Take(8, 40);
  EXPECT_EQ(KindsOf(batch), KindBit(EventKind::kCheckpoint));
  EXPECT_EQ(KindsOf(batch) & KindBit(EventKind::kChild), 0u);
  BatchInfo other;
  other.offset = 48;
  other.size = 40;
  other.kinds = uint32_t{1} << kLastKindBit;
  other.more_kinds = 1;
  BlockSummary both;
  both.Add(batch);
  both.Add(other);
  EXPECT_NE(KindsOf(both.Take(0).all) & KindBit(EventKind::kCheckpoint), 0u)
      << "one of them has it";
  for (const uint32_t kind : {61u, 62u, 63u}) {  // of newer ones
    summary.Add(event, kind);
    EXPECT_NE(KindsOf(summary.Take(8, 40)) & uint64_t{1} << kind, 0u) << kind;
  }
}

TEST(BatchKindsTest, StepsThatGoBackAreSaid) {
  BatchInfo batch;
  batch.steps = {3, 4, 9};
  BlockSummary block;
  block.Add(batch);
  block.Add(BatchInfo());
  BatchBlock taken = block.Take(1);
  EXPECT_TRUE(taken.steps_ascend);
  EXPECT_EQ(taken.steps, 3u);
  block.Add(batch);
  block.Add(batch);
  taken = block.Take(1);
  EXPECT_FALSE(taken.steps_ascend);
  EXPECT_EQ(taken.least_step, 3u);
  EXPECT_EQ(taken.greatest_step, 9u);
}

}  // namespace
}  // namespace deja::format
