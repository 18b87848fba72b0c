#include "recorder/files/read_runs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "recorder/files/seen_pages.h"

namespace deja::recorder {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;
using testing::UnorderedElementsAre;

class ReadRunsTest : public testing::Test {
 protected:
  void SetUp() override {
    content_.resize(3 << 20);
    for (size_t i = 0; i < content_.size(); ++i)
      content_[i] = static_cast<std::byte>(i * 2654435761u >> 13);
  }
  uint64_t Read(uint64_t offset, size_t size) {
    return runs_.Add(offset, std::span(content_).subspan(offset, size), keep_, Sink());
  }
  ReadRuns::Sink Sink() {
    return {[](const ReadRange& range, void* context) {
              auto* self = static_cast<ReadRunsTest*>(context);
              self->ranges_.emplace_back(range.begin, range.size);
              const auto bytes = std::span(self->content_).subspan(range.begin, range.size);
              EXPECT_EQ(range.hash, digest::HashBytes(bytes)) << range.begin;
              if (self->keep_) {
                EXPECT_TRUE(
                    std::equal(bytes.begin(), bytes.end(), range.bytes.begin(), range.bytes.end()));
              }
            },
            this};
  }

  std::vector<std::byte> content_;
  ReadRuns runs_;
  bool keep_ = false;
  std::vector<std::pair<uint64_t, uint64_t>> ranges_;
};

TEST_F(ReadRunsTest, ReadsThatFollowOneAnotherAreOneRange) {
  for (uint64_t at = 0; at < 40960; at += 4096) Read(at, 4096);
  EXPECT_THAT(ranges_, IsEmpty());
  runs_.Finish(Sink());
  EXPECT_THAT(ranges_, ElementsAre(Pair(0, 40960)));
}

TEST_F(ReadRunsTest, LongRangesAreCutAtMultiples) {
  for (uint64_t at = 1000; at < 2500000; at += 7000) Read(at, 7000);
  runs_.Finish(Sink());
  EXPECT_THAT(ranges_, ElementsAre(Pair(1000, (1 << 20) - 1000), Pair(1 << 20, 1 << 20),
                                   Pair(2 << 20, 2500000 - (2 << 20))));
}

TEST_F(ReadRunsTest, PartsThatAreReadInTurnsStayTogether) {
  for (uint64_t i = 0; i < 10; ++i)
    for (uint64_t part : {0, 100000, 200000, 300000}) Read(part + i * 1000, 1000);
  EXPECT_THAT(ranges_, IsEmpty());
  runs_.Finish(Sink());
  EXPECT_THAT(ranges_, UnorderedElementsAre(Pair(0, 10000), Pair(100000, 10000),
                                            Pair(200000, 10000), Pair(300000, 10000)));
}

TEST_F(ReadRunsTest, TheRunThatHasNotGrownForLongestGivesWay) {
  for (uint64_t at : {0, 10000, 20000, 30000, 40000}) Read(at, 100);
  EXPECT_THAT(ranges_, ElementsAre(Pair(0, 100)));
}

TEST_F(ReadRunsTest, KeptRangesComeWithTheirBytes) {
  keep_ = true;
  for (uint64_t at = 100; at < 200000; at += 5000) Read(at, 5000);
  Read(1 << 20, 1500000);  // straight from the program's memory
  runs_.Finish(Sink());
  uint64_t sum = 0;
  for (const auto& [begin, size] : ranges_) sum += size;
  EXPECT_EQ(sum, 200000u + 1500000u);
}

TEST_F(ReadRunsTest, SaysSinceWhereNothingIsMissing) {
  EXPECT_EQ(Read(500, 4000), 500u);
  EXPECT_EQ(Read(4500, 4000), 500u);
  EXPECT_EQ(Read(50000, 10), 50000u);
  EXPECT_EQ(Read(8500, 2 << 20), 500u);
  EXPECT_EQ(Read(8500 + (2 << 20), 10), 500u);
}

TEST_F(ReadRunsTest, AForgottenRunIsNeverFinished) {
  Read(0, 1000);
  runs_.Forget();
  runs_.Finish(Sink());
  EXPECT_THAT(ranges_, IsEmpty());
}

TEST(SeenPagesTest, CoversWhatWasMarkedInWholePages) {
  for (const uint64_t size : {uint64_t{200000}, uint64_t{2} << 30}) {
    SeenPages seen;
    seen.SetSize(size);
    EXPECT_FALSE(seen.Covers(0, 1));
    seen.Mark(100, 3 * 4096);  // its first page is not whole
    EXPECT_FALSE(seen.Covers(100, 200));
    EXPECT_TRUE(seen.Covers(4096, 4097));
    EXPECT_TRUE(seen.Covers(5000, 3 * 4096));
    EXPECT_FALSE(seen.Covers(5000, 3 * 4096 + 1));
    seen.Mark(0, 150000);
    EXPECT_TRUE(seen.Covers(1, 147455));
    EXPECT_FALSE(seen.Covers(1, 149000));
    seen.Mark(size - 4096 * 2, size);
    EXPECT_TRUE(seen.Covers(size - 1, size));
    EXPECT_FALSE(seen.Covers(size - 1, size + 4096));
  }
}

TEST(SeenPagesTest, AnEmptyFileCoversNothing) {
  SeenPages seen;
  seen.SetSize(0);
  seen.Mark(0, 0);
  EXPECT_FALSE(seen.Covers(0, 1));
}

}  // namespace
}  // namespace deja::recorder
