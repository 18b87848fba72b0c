// How the window of payloads moves: numbers of segments, the board that ranks share, and what may
// go.
#include "format/window/payload_window.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "format/layout/payload_segments.h"
#include "format/log/rank_writer.h"
#include "format/wire/wire.h"
#include "tests/unit/format/log/rank_scan.h"

namespace deja::format {
namespace {

using ::testing::ElementsAre;

TEST(PayloadSegmentsTest, OneNameANumber) {
  EXPECT_EQ(SegmentFileName(0), "payloads.deja");
  EXPECT_EQ(SegmentFileName(17), "payloads-17.deja");
  EXPECT_EQ(ParseSegmentFileName("payloads.deja"), 0u);
  EXPECT_EQ(ParseSegmentFileName("payloads-17.deja"), 17u);
  for (const char* name : {"payloads-0.deja", "payloads-017.deja", "payloads-.deja", "payloads-1",
                           "payloads-1.deja.next", "payloads-+1.deja", "payloads-4294967296.deja",
                           "payloads-.dej", "events.deja"})
    EXPECT_EQ(ParseSegmentFileName(name), std::nullopt) << name;
}

TEST(PayloadSegmentsTest, RangesThatTouchAreOne) {
  std::vector<SegmentRange> ranges;
  AddRange(ranges, {4, 4});
  AddRange(ranges, {0, 1});
  AddRange(ranges, {8, 9});
  EXPECT_THAT(ranges, ElementsAre(SegmentRange{0, 1}, SegmentRange{4, 4}, SegmentRange{8, 9}));
  AddRange(ranges, {2, 3});
  EXPECT_THAT(ranges, ElementsAre(SegmentRange{0, 4}, SegmentRange{8, 9}));
  AddRange(ranges, {3, 20});
  EXPECT_THAT(ranges, ElementsAre(SegmentRange{0, 20}));
  EXPECT_TRUE(Contains(ranges, 20));
  EXPECT_FALSE(Contains(ranges, 21));
}

TEST(WindowBoardTest, NoRankDropsPayloadsThatAnotherOneWants) {
  WindowBoard board{};
  const int fast = board.Join();
  const int slow = board.Join();
  for (uint64_t part = 1; part <= 10; ++part) board.AdvanceForPart(part, 0);
  board.AdvanceForPart(10, 0);
  EXPECT_EQ(board.segment(), 10u);
  board.SetFirst(fast, 8);
  board.SetFirst(slow, 5);
  EXPECT_FALSE(board.Wanted(4));
  EXPECT_TRUE(board.Wanted(5));
  board.Close(slow);
  board.AdvanceForPart(11, 0);
  board.AdvanceForPart(12, 0);
  board.SetFirst(fast, 12);
  EXPECT_TRUE(board.Wanted(10));
  EXPECT_FALSE(board.Wanted(11));
  EXPECT_TRUE(board.Wanted(12));
}

TEST(WindowBoardTest, PartsWithLittleInThemShareASegment) {
  WindowBoard board{};
  board.AdvanceForPart(1, 1000);
  EXPECT_EQ(board.segment(), 1u) << "what came before is for itself";
  board.AddBytes(999);
  board.AdvanceForPart(2, 1000);
  board.AdvanceForPart(2, 1000);  // another member
  EXPECT_EQ(board.segment(), 1u);
  board.AddBytes(1);
  board.AdvanceForPart(2, 1000);  // it has decided already
  EXPECT_EQ(board.segment(), 1u);
  board.AdvanceForPart(3, 1000);
  EXPECT_EQ(board.segment(), 2u);
  board.AdvanceForPart(4, 1000);
  EXPECT_EQ(board.segment(), 2u) << "counted anew";
}

TEST(WindowBoardTest, AnotherAttemptCountsFromTheBeginning) {
  WindowBoard board{};
  const int first = board.Join(7);
  for (uint64_t part = 1; part <= 5; ++part) board.AdvanceForPart(part, 0);
  EXPECT_TRUE(board.BeginStep(first, 5));
  board.SetFirst(first, 4);
  board.Close(first);
  const uint32_t before = board.segment();
  const int second = board.Join(8);
  EXPECT_EQ(board.StepOf(second), 0u);
  EXPECT_EQ(board.segment(), before + 1) << "what the first attempt has can go without its own";
  EXPECT_TRUE(board.AdvanceForPart(1, 1000));
  EXPECT_TRUE(board.BeginStep(second, 1));
  EXPECT_EQ(board.segment(), before + 2);
  EXPECT_EQ(board.StepOf(second), 1u);
  EXPECT_TRUE(board.MayBeWanted(before)) << "the window of the first attempt";
  EXPECT_FALSE(board.MayBeWanted(3));
}

TEST(WindowBoardTest, TheLastRankToReachItsFirstStepBeginsASegment) {
  WindowBoard board{};
  const int fast = board.Join();
  const int slow = board.Join();
  EXPECT_FALSE(board.BeginStep(fast, 1));
  EXPECT_FALSE(board.BeginStep(fast, 2));
  EXPECT_EQ(board.StepOf(slow), 0u);
  EXPECT_TRUE(board.BeginStep(slow, 1));
  EXPECT_FALSE(board.BeginStep(slow, 2));
  EXPECT_EQ(board.StepOf(slow), 2u);
}

TEST(WindowBoardTest, AChildFindsTheNearestRank) {
  WindowBoard board{};
  EXPECT_EQ(board.OwnerOf("root", "0/1"), -1);
  const int outer = board.Join(WindowBoard::NameOf("root", ""));
  const int inner = board.Join(WindowBoard::NameOf("root", "0/1+1"));
  EXPECT_EQ(board.OwnerOf("root", "0/1+1/0.2/3"), inner);
  EXPECT_EQ(board.OwnerOf("root", "0/1+1/0.2/3/0/1+4"), inner);
  EXPECT_EQ(board.OwnerOf("root", "0/2/0/1"), outer);
  EXPECT_EQ(board.OwnerOf("other", "0/2/0/1"), -1);
}

TEST(PayloadWindowTest, ReachesBackToACheckpoint) {
  WindowOptions options;
  options.keep_steps = 4;
  options.shared_bytes = 0;  // each step has a segment
  PayloadWindow window(options);
  std::vector<uint32_t> segments{0};
  auto step = [&](bool checkpoint) {
    const uint64_t number = segments.size();
    window.BeginStep(number);
    segments.push_back(window.segment());
    if (checkpoint) window.KeepCheckpoint(number);
  };
  auto is_there = [&](uint64_t number) {
    Segment segment;
    segment.number = segments[number];
    segment.first_step = segment.last_step = number;
    return !window.Expired(segment, {segment.number, segment.number}, 0, 0);
  };
  for (int i = 1; i <= 8; ++i) step(i == 1 || i == 6);
  EXPECT_TRUE(is_there(1)) << "step 6 is within the last four";
  EXPECT_TRUE(is_there(3));
  step(false);
  EXPECT_FALSE(is_there(1));
  EXPECT_FALSE(is_there(5));
  EXPECT_TRUE(is_there(6));
  for (int i = 10; i <= 20; ++i) step(false);
  EXPECT_TRUE(is_there(6)) << "there is no later one";
}

TEST(PayloadWindowTest, ReachesBackToACheckpointOfTheOnlyStep) {
  WindowOptions options;
  options.keep_steps = 1;
  options.shared_bytes = 0;
  PayloadWindow window(options);
  window.BeginStep(1);
  window.BeginStep(2);
  const uint32_t second = window.segment();
  window.KeepCheckpoint(2);
  window.BeginStep(3);
  Segment segment;
  segment.number = second;
  segment.last_step = 2;
  EXPECT_FALSE(window.Expired(segment, {second, second}, 0, 0));
  segment.number = second - 1;
  segment.last_step = 1;
  EXPECT_TRUE(window.Expired(segment, {second - 1, second - 1}, 0, 0));
}

// The window of a rank whose process is gone stays, and with it what others keep for it.
TEST(PayloadWindowTest, PayloadsTooLateForASegmentStayAsLongAsIt) {
  WindowOptions options;
  options.keep_steps = 2;
  options.shared_bytes = 0;
  WindowBoard board{};
  PayloadWindow gone(options);
  PayloadWindow window(options);
  ASSERT_TRUE(gone.Join(board, 1));
  ASSERT_TRUE(window.Join(board, 2));
  for (const uint64_t step : {1, 2, 3}) {
    gone.BeginStep(step);
    window.BeginStep(step);
  }
  gone.Close();
  const uint32_t last = window.segment();
  for (uint64_t step = 4; step <= 20; ++step) window.BeginStep(step);

  Segment segment;
  segment.number = last + 1;
  segment.first_step = segment.last_step = 4;
  EXPECT_TRUE(window.Expired(segment, {last + 1, last + 1}, 0, 0));
  EXPECT_FALSE(window.Expired(segment, {last, last + 1}, 0, 0));
}

TEST(WindowBoardTest, AMarkKeepsWhatIsThere) {
  WindowBoard board{};
  board.AdvanceForPart(1, 0);
  board.Mark(1);
  EXPECT_EQ(board.marked_end(), 2u);
  EXPECT_EQ(board.segment(), 2u);
  board.Advance(2);
  board.Mark(1);  // the same one, seen by another rank
  EXPECT_EQ(board.marked_end(), 2u);
  board.Mark(2);
  EXPECT_EQ(board.marked_end(), 4u);
}

TEST(RankWriterTest, ASegmentReachesBackToLatePayloads) {
  const TempDir dir;
  auto writer = RankWriter::Create(dir / "folder", {});
  ASSERT_TRUE(writer) << writer.error().message;
  const auto put = [&](uint32_t segment, const std::string& bytes) {
    PayloadPart part;
    part.hash = HashOf(bytes);
    part.total_size = bytes.size();
    part.bytes = AsBytes(bytes);
    part.segment = segment;
    return (*writer)->WritePayload(part).has_value();
  };
  ASSERT_TRUE((*writer)->AdvanceTo(14, 0));
  ASSERT_TRUE(put(14, "a"));
  EXPECT_EQ((*writer)->segments().back().MeantFor(), (SegmentRange{14, 14}));
  ASSERT_TRUE(put(12, "b"));
  ASSERT_TRUE(put(13, "c"));
  EXPECT_EQ((*writer)->segments().back().MeantFor(), (SegmentRange{12, 14}));
}

}  // namespace
}  // namespace deja::format
