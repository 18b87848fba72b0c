#include "format/payloads/sorted_rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <random>
#include <string>
#include <system_error>
#include <vector>

#include "format/payloads/piece_rows.h"
#include "tests/support/sample_trace.h"

namespace deja::format {
namespace {

struct SortedRow {
  uint64_t key = 0;
  uint64_t value = 0;

  friend auto operator<=>(const SortedRow&, const SortedRow&) = default;
};

std::vector<SortedRow> RandomRows(size_t count) {
  std::mt19937_64 random(7);
  std::vector<SortedRow> rows;
  for (size_t i = 0; i < count; ++i) rows.push_back({random() % (count / 2 + 1), i});
  return rows;
}

void ExpectSorted(const SortedRows<SortedRow>& rows, std::vector<SortedRow> expected) {
  std::sort(expected.begin(), expected.end());
  ASSERT_EQ(rows.size(), expected.size());
  SortedRow row;
  for (size_t i = 0; i < expected.size(); ++i) {
    ASSERT_TRUE(rows.At(i, row));
    ASSERT_EQ(row, expected[i]) << i;
  }
  for (const uint64_t key : {uint64_t{0}, uint64_t{1}, uint64_t{500}, ~uint64_t{0}}) {
    const auto at = std::lower_bound(expected.begin(), expected.end(), SortedRow{key, 0});
    EXPECT_EQ(rows.LowerBound({key, 0}), static_cast<size_t>(at - expected.begin())) << key;
  }
}

TEST(SortedRowsTest, FewStayInMemoryAndManyGoIntoAFile) {
  for (const size_t count : {0, 1, 99, 100, 101, 256, 5000}) {
    const std::vector<SortedRow> all = RandomRows(count);
    SortedRows<SortedRow> rows(100);
    for (const SortedRow& row : all) rows.Add(row);
    ASSERT_TRUE(rows.Sort());
    ExpectSorted(rows, all);
  }
}

// The numbers of descriptors of files in `folder` that are open here.
std::vector<int> OpenIn(const std::string& folder) {
  std::vector<int> numbers;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    const std::string target = std::filesystem::read_symlink(entry.path(), gone).string();
    if (target.starts_with(folder + "/")) numbers.push_back(std::stoi(entry.path().filename()));
  }
  return numbers;
}

TEST(SortedRowsTest, TheFileIsInTheFolderThatIsNamedOutOfAProgramsWay) {
  const samples::ScratchFolder scratch;
  const std::vector<SortedRow> all = RandomRows(5000);
  {
    SortedRows<SortedRow> rows(100, scratch.path());
    for (const SortedRow& row : all) rows.Add(row);
    ASSERT_TRUE(rows.Sort());
    ExpectSorted(rows, all);
    EXPECT_THAT(OpenIn(scratch.path()), testing::ElementsAre(testing::Ge(600)));
  }
  EXPECT_THAT(OpenIn(scratch.path()), testing::IsEmpty());
  SortedRows<SortedRow> in_memory(100, scratch.path() + "/is-not-there");
  for (const SortedRow& row : all) in_memory.Add(row);
  ASSERT_TRUE(in_memory.Sort());
  ExpectSorted(in_memory, all);
}

TEST(PieceRowsTest, PiecesOfEachPayloadComeTogether) {
  constexpr uint64_t kPayloads = 1000;
  PieceRows rows(64);
  PayloadPiece piece;
  piece.size = 10;
  for (const uint64_t offset : {10, 0}) {
    for (uint64_t i = 0; i < kPayloads; ++i) {
      Hash128 hash;
      hash.bytes[0] = static_cast<uint8_t>(i % 251);
      hash.bytes[1] = static_cast<uint8_t>(i / 251);
      piece.offset = offset;
      piece.frame = 100 * i + offset;
      rows.Add(hash, 20, piece);
    }
  }
  piece.frame = 1 << 30;  // contradicts what is known of the first
  rows.Add(Hash128{}, 21, piece);
  ASSERT_TRUE(rows.Sort());
  EXPECT_EQ(rows.size(), 2 * kPayloads + 1);
  uint64_t payloads = 0;
  Hash128 hash;
  PayloadEntry entry;
  for (size_t at = 0; rows.Next(at, hash, entry); ++payloads) {
    ASSERT_EQ(entry.pieces.size(), 2u);
    ASSERT_TRUE(entry.Complete());
    ASSERT_EQ(rows.Behind(hash), at);
    PayloadEntry found;
    ASSERT_TRUE(rows.Find(hash, found));
    ASSERT_EQ(found.pieces.size(), 2u);
    ASSERT_EQ(found.pieces[0].frame, entry.pieces[0].frame);
  }
  EXPECT_EQ(payloads, kPayloads);
  hash.bytes[15] = 9;
  EXPECT_FALSE(rows.Find(hash, entry));
}

}  // namespace
}  // namespace deja::format
