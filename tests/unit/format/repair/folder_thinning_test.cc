// Payloads that are dropped from the folder of a process that has ended.
#include "format/repair/folder_thinning.h"
#include "format/layout/payload_segments.h"
#include "format/log/rank_log.h"
#include "format/reader/rank_reader.h"
#include "format/repair/recovery.h"
#include "format/trace/trace.h"
#include "format/trace/verify.h"
#include "format/wire/message_codec.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>

#include "tests/unit/format/log/rank_scan.h"

namespace deja::format {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kThinnedSteps = 5;

std::string BytesOfStep(uint64_t step) {
  return SomeBytes(step, 4000);
}

std::string ReadAll(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void WriteAll(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

// A finished folder with a payload in the file of each step.
class FolderThinningTest : public ::testing::Test {
 protected:
  void SetUp() override {
    RankLogOptions options;
    options.trace_dir = dir_.path();
    options.tail_dir = tails_.path();
    options.job_id = "00112233445566778899aabbccddeeff";
    options.payload_bytes = 1 << 20;
    options.window.keep_steps = kThinnedSteps;  // a file a step
    options.window.shared_bytes = 0;
    auto log = RankLog::Create(options);
    ASSERT_TRUE(log);
    TraceHeader header;
    header.world_size = 1;
    ASSERT_TRUE((*log)->BecomeRank(header));
    EventSink* sink = (*log)->ClaimSink(0);
    uint64_t seq = 0;
    const auto append = [&](const auto& message) {
      const EventHead head{0, seq++, seq};
      ASSERT_TRUE(sink->Append(AsBytes(EncodeEventToString(head, message))));
    };
    for (uint64_t step = 1; step <= kThinnedSteps; ++step) {
      append(Step{step});
      (*log)->BeginStep(step);
      const std::string bytes = BytesOfStep(step);
      Snapshot snapshot;
      snapshot.tensor.hash = HashOf(bytes);
      const Placed placed = (*log)->PutPayload(snapshot.tensor.hash, AsBytes(bytes), 4);
      ASSERT_TRUE(placed.kept);
      snapshot.tensor.payload = static_cast<uint32_t>(PayloadState::kKept);
      snapshot.tensor.segment = placed.segment;
      append(snapshot);
    }
    (*log)->ReleaseSink(sink);
    (*log)->Finish();
  }

  [[nodiscard]] std::string Folder() const { return dir_ / "rank-00000"; }
  [[nodiscard]] std::string Events() const { return Folder() + "/events.deja"; }

  // True if all that is said of the folder is so.
  void ExpectSound() {
    const auto trace = Trace::Open(dir_.path());
    ASSERT_TRUE(trace);
    const auto report = Verify(**trace, {});
    ASSERT_TRUE(report);
    for (const VerifyProblem& problem : report->problems) ADD_FAILURE() << problem.what;
    EXPECT_EQ(report->payloads_missing, 0u);
  }

  // Which steps' payloads can be read.
  std::vector<uint64_t> Readable() {
    std::vector<uint64_t> steps;
    const auto reader = RankReader::Open(Folder());
    EXPECT_TRUE(reader);
    if (!reader) return steps;
    for (uint64_t step = 1; step <= kThinnedSteps; ++step)
      if ((*reader)->StreamPayload(HashOf(BytesOfStep(step)), [](std::span<const std::byte>) {}))
        steps.push_back(step);
    return steps;
  }

  TempDir dir_;
  TempDir tails_;
};

TEST_F(FolderThinningTest, TheOldestOnesGo) {
  const std::vector<uint32_t> before = ListSegments(Folder());
  const uint64_t first_bytes = fs::file_size(Folder() + "/" + SegmentFileName(before[0])) +
                               fs::file_size(Folder() + "/" + SegmentFileName(before[1]));
  uint64_t freed = 0;
  const auto goes = [&](const Segment& segment) { return segment.number <= before[1]; };
  const auto left = DropSegments(Folder(), goes, "why", freed);
  ASSERT_TRUE(left);
  EXPECT_EQ(left->size(), before.size() - 2);
  EXPECT_EQ(freed, first_bytes);
  EXPECT_EQ(ListSegments(Folder()).size(), before.size() - 2);
  const auto reader = RankReader::Open(Folder());
  ASSERT_TRUE(reader);
  EXPECT_TRUE((*reader)->Dropped(before[1]));
  EXPECT_FALSE((*reader)->Dropped(before[2]));
  EXPECT_EQ(Readable(), (std::vector<uint64_t>{3, 4, 5}));
  ExpectSound();
  freed = 0;
  ASSERT_TRUE(DropSegments(Folder(), goes, "why", freed));
  EXPECT_EQ(freed, 0u);
}

TEST_F(FolderThinningTest, AFolderWithoutAnyIsStillComplete) {
  uint64_t freed = 0;
  ASSERT_TRUE(DropSegments(
      Folder(), [](const Segment&) { return true; }, "", freed));
  EXPECT_TRUE(ListSegments(Folder()).empty());
  EXPECT_TRUE(FinishedSegments(Folder()).value_or(std::vector<Segment>(1)).empty());
  // Recovery finds out how the process ended.
  ProcessFate fate;
  fate.known = true;
  fate.exit_code = 3;
  const auto report = RecoverRank(Folder(), fate);
  ASSERT_TRUE(report) << report.error().message;
  const auto reader = RankReader::Open(Folder());
  ASSERT_TRUE(reader);
  EXPECT_EQ((*reader)->totals().fate.exit_code, 3);
  EXPECT_EQ((*reader)->totals().payloads_dropped, kThinnedSteps);
  EXPECT_TRUE(Readable().empty());
  ExpectSound();
}

// The dropping process dies at any byte that it writes, or before it has removed the files.
TEST_F(FolderThinningTest, ADeathOnTheWayLosesNothingThatStays) {
  const std::vector<uint32_t> numbers = ListSegments(Folder());
  std::map<std::string, std::string> files;
  for (const uint32_t number : numbers)
    files[Folder() + "/" + SegmentFileName(number)] =
        ReadAll(Folder() + "/" + SegmentFileName(number));
  const std::string before = ReadAll(Events());
  const auto goes = [&](const Segment& segment) { return segment.number <= numbers[2]; };
  uint64_t freed = 0;
  ASSERT_TRUE(DropSegments(Folder(), goes, "", freed));
  const std::string after = ReadAll(Events());
  ASSERT_GT(after.size(), before.size());
  ASSERT_EQ(after.substr(0, before.size()), before);
  const std::vector<uint64_t> stay = {4, 5};
  for (size_t size = before.size(); size <= after.size(); ++size) {
    SCOPED_TRACE("cut at " + std::to_string(size) + " of " + std::to_string(after.size()));
    WriteAll(Events(), after.substr(0, size));
    for (const auto& [path, bytes] : files) WriteAll(path, bytes);
    const std::vector<uint64_t> readable = Readable();
    EXPECT_TRUE(std::includes(readable.begin(), readable.end(), stay.begin(), stay.end()));
    ASSERT_TRUE(RecoverRank(Folder(), {}));
    ASSERT_TRUE(DropSegments(Folder(), goes, "", freed));
    EXPECT_EQ(Readable(), stay);
    EXPECT_EQ(ListSegments(Folder()).size(), numbers.size() - 3);
    ExpectSound();
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace deja::format
