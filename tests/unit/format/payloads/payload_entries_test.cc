#include "format/payloads/payload_entries.h"

#include <gtest/gtest.h>

#include <cstring>

namespace deja::format {
namespace {

Hash128 EntryHash(uint64_t number) {
  Hash128 hash;
  hash.bytes[0] = 1;
  std::memcpy(hash.bytes.data() + 8, &number, sizeof number);
  return hash;
}

PayloadPiece PieceAt(uint64_t offset, uint64_t size) {
  PayloadPiece piece;
  piece.offset = offset;
  piece.size = size;
  piece.frame = 100 + offset;
  piece.segment = 3;
  return piece;
}

TEST(PayloadEntriesTest, EachOfVeryManyIsFound) {
  constexpr uint64_t kMany = 5000;
  PayloadEntries entries;
  for (uint64_t i = 0; i < kMany; ++i)
    ASSERT_TRUE(entries.Add(EntryHash(i), 10 + i, PieceAt(0, 10 + i)));
  EXPECT_EQ(entries.size(), kMany);
  PayloadEntry entry;
  for (uint64_t i = 0; i < kMany; ++i) {
    ASSERT_TRUE(entries.Find(EntryHash(i), entry));
    ASSERT_EQ(entry.total_size, 10 + i);
    ASSERT_EQ(entry.pieces.size(), 1u);
    ASSERT_EQ(entry.pieces[0].size, 10 + i);
    ASSERT_EQ(entry.pieces[0].frame, 100u);
    ASSERT_EQ(entry.pieces[0].segment, 3u);
    ASSERT_TRUE(entry.Complete());
  }
  EXPECT_FALSE(entries.Find(EntryHash(kMany), entry));
}

TEST(PayloadEntriesTest, PiecesStayInTheirOrderAndAreOfOnePayload) {
  PayloadEntries entries;
  ASSERT_TRUE(entries.Add(EntryHash(1), 30, PieceAt(20, 10)));
  ASSERT_TRUE(entries.Add(EntryHash(1), 30, PieceAt(0, 10)));
  EXPECT_FALSE(entries.Add(EntryHash(1), 31, PieceAt(10, 10))) << "of another size";
  PayloadEntry entry;
  ASSERT_TRUE(entries.Find(EntryHash(1), entry));
  EXPECT_FALSE(entry.Complete());
  ASSERT_TRUE(entries.Add(EntryHash(1), 30, PieceAt(10, 10)));
  ASSERT_TRUE(entries.Find(EntryHash(1), entry));
  EXPECT_TRUE(entry.Complete());
  ASSERT_EQ(entry.pieces.size(), 3u);
  EXPECT_EQ(entry.pieces[0].offset, 20u);
  EXPECT_EQ(entry.pieces[2].offset, 10u);
}

TEST(PayloadEntriesTest, AnIndexTakesThePlaceOfPieces) {
  PayloadEntries entries;
  ASSERT_TRUE(entries.Add(EntryHash(1), 30, PieceAt(0, 10)));
  ASSERT_TRUE(entries.Add(EntryHash(1), 30, PieceAt(10, 10)));
  PayloadEntry whole;
  whole.total_size = 30;
  whole.indexed = true;
  whole.pieces = {PieceAt(0, PayloadPiece::kUnknownSize), PieceAt(7, PayloadPiece::kUnknownSize)};
  entries.Set(EntryHash(1), whole);
  PayloadEntry entry;
  ASSERT_TRUE(entries.Find(EntryHash(1), entry));
  EXPECT_TRUE(entry.indexed);
  EXPECT_TRUE(entry.Complete());
  ASSERT_EQ(entry.pieces.size(), 2u);
  EXPECT_EQ(entry.pieces[1].offset, 7u);
  EXPECT_FALSE(entries.Add(EntryHash(1), 30, PieceAt(0, 30)));
  entries.Clear();
  EXPECT_FALSE(entries.Find(EntryHash(1), entry));
}

TEST(PayloadEntriesTest, APieceOfTheTailIsOne) {
  const TailPayload part;
  PayloadPiece piece = PieceAt(0, 5);
  piece.part = &part;
  PayloadEntries entries;
  ASSERT_TRUE(entries.Add(EntryHash(1), 5, piece));
  PayloadEntry entry;
  ASSERT_TRUE(entries.Find(EntryHash(1), entry));
  EXPECT_EQ(entry.pieces[0].part, &part);
}

}  // namespace
}  // namespace deja::format
