#include "format/repair/scanned_payloads.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace deja::format {
namespace {

using testing::ElementsAre;

Hash128 NumberedHash(uint8_t number) {
  Hash128 hash;
  hash.bytes[0] = number;
  return hash;
}

PayloadChunk ChunkOf(uint8_t number, uint64_t total_size, uint64_t offset, uint64_t size) {
  PayloadChunk chunk;
  chunk.hash = NumberedHash(number);
  chunk.total_size = total_size;
  chunk.offset = offset;
  chunk.size = size;
  return chunk;
}

SegmentFile NumberedSegment(uint32_t number) {
  SegmentFile segment;
  segment.facts.number = number;
  return segment;
}

// "1@0:100,200": payload 1 in segment 0; "1/0:100": a part of it.
std::vector<std::string> Listed(const ScannedPayloads& scanned,
                                const std::vector<SegmentFile>& segments) {
  RecoveredElements elements(scanned, segments);
  std::vector<std::string> list;
  for (IndexElement one = elements.Next(); !one.is_end(); one = elements.Next()) {
    const bool whole = one.payload != nullptr;
    std::string text = std::to_string(one.hash().bytes[0]) + (whole ? "@" : "/") +
                       std::to_string(whole ? one.payload->segment : one.pieces->segment) + ":";
    for (const uint64_t at : whole ? one.payload->chunk_offsets : one.pieces->chunk_offsets)
      text += std::to_string(at) + ",";
    text.pop_back();
    list.push_back(text);
  }
  return list;
}

TEST(ScannedPayloadsTest, TheNewestWholeOneIsListedElseAllPieces) {
  ScannedPayloads scanned;
  scanned.Add(ChunkOf(1, 10, 0, 10), 0, 100);  // whole in two segments
  scanned.Add(ChunkOf(1, 10, 0, 10), 2, 300);
  scanned.Add(ChunkOf(2, 20, 10, 10), 0, 120);  // whole in one, of two chunks
  scanned.Add(ChunkOf(2, 20, 0, 10), 0, 110);
  scanned.Add(ChunkOf(2, 20, 0, 10), 2, 310);
  scanned.Add(ChunkOf(3, 20, 0, 10), 0, 130);  // the halves are in two segments
  scanned.Add(ChunkOf(3, 20, 10, 10), 2, 320);
  scanned.Add(ChunkOf(5, 10, 0, 10), 1, 200);  // in one that was dropped
  ASSERT_TRUE(scanned.Settle());
  std::vector<SegmentFile> segments = {NumberedSegment(0), NumberedSegment(2)};
  EXPECT_THAT(Listed(scanned, segments),
              ElementsAre("1@2:300", "2@0:110,120", "3/0:130", "3/2:320"));
  Footer footer;
  RecoveredElements counted(scanned, segments);
  CountElements(counted, footer);
  EXPECT_EQ(footer.payloads, 2u);
  EXPECT_EQ(footer.payload_bytes, 30u);
  EXPECT_EQ(footer.partial_payloads, 1u);
  EXPECT_EQ(footer.partial_payload_bytes, 20u);
  EXPECT_EQ(ScannedPayloads::NewestWhole(scanned.Find(NumberedHash(1))), 2u);
  EXPECT_EQ(ScannedPayloads::NewestWhole(scanned.Find(NumberedHash(3))), std::nullopt);
  EXPECT_TRUE(scanned.Find(NumberedHash(4)).empty());
}

TEST(ScannedPayloadsTest, AddedPayloadsAreAmongThem) {
  ScannedPayloads scanned;
  scanned.Add(ChunkOf(1, 10, 0, 10), 0, 100);
  scanned.Add(ChunkOf(3, 20, 0, 10), 2, 310);
  scanned.Add(ChunkOf(6, 20, 0, 10), 0, 140);
  ASSERT_TRUE(scanned.Settle());
  std::vector<SegmentFile> segments = {NumberedSegment(0), NumberedSegment(2)};
  segments[1].whole.push_back({NumberedHash(2), 10, {400}, 2});
  segments[1].whole.push_back({NumberedHash(1), 10, {410}, 2});  // once more
  segments[1].partial[NumberedHash(3)].total_size = 20;          // the other half
  segments[1].partial[NumberedHash(3)].Add(10, 10, 420);
  segments[1].partial[NumberedHash(7)].total_size = 20;
  segments[1].partial[NumberedHash(7)].Add(0, 10, 430);
  EXPECT_THAT(Listed(scanned, segments),
              ElementsAre("1@2:410", "2@2:400", "3@2:310,420", "6/0:140", "7/2:430"));
}

}  // namespace
}  // namespace deja::format
