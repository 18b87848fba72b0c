// The window of payloads in folders: what is kept, what is dropped, and what readers say about
// both.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

#include "format/layout/mark.h"
#include "format/layout/payload_segments.h"
#include "format/log/rank_log.h"
#include "format/reader/rank_reader.h"
#include "format/repair/folder_thinning.h"
#include "format/repair/recovery.h"
#include "format/trace/trace.h"
#include "format/trace/verify.h"
#include "format/window/disk_ledger.h"
#include "format/wire/message_codec.h"
#include "tests/unit/format/log/rank_scan.h"

namespace deja::format {
namespace {

class WindowTest : public ::testing::Test {
 protected:
  static constexpr char kJob[] = "00112233445566778899aabbccddeeff";

  void SetUp() override { setenv("DEJA_TAIL_DIR", tails_.path().c_str(), 1); }

  std::unique_ptr<RankLog> Make(const WindowOptions& window, uint32_t rank = 0,
                                uint32_t copies = 0) {
    RankLogOptions options;
    options.trace_dir = dir_.path();
    options.tail_dir = tails_.path();
    options.job_id = kJob;
    options.payload_bytes = 1 << 20;
    options.copies = copies;
    options.window = window;
    options.window.shared_bytes = shared_bytes_;
    auto log = RankLog::Create(options);
    EXPECT_TRUE(log);
    TraceHeader header;
    header.rank = rank;
    header.world_size = copies == 0 ? 1 : 2;
    EXPECT_TRUE((*log)->BecomeRank(header));
    return std::move(*log);
  }
  std::unique_ptr<RankLog> MakeChild(const WindowOptions& window) {
    RankLogOptions options;
    options.trace_dir = dir_.path();
    options.tail_dir = tails_.path();
    options.job_id = kJob;
    options.payload_bytes = 1 << 20;
    options.window = window;
    auto log = RankLog::Create(options);
    EXPECT_TRUE(log);
    EXPECT_TRUE((*log)->BecomeChild(TraceHeader{}));
    return std::move(*log);
  }
  static std::string Bytes(uint64_t step, uint64_t number = 0, size_t size = 4000) {
    return SomeBytes(step * 1000 + number, size);
  }
  // Keeps the bytes and appends an event that refers to them.
  static void Put(RankLog& log, const std::string& bytes, uint64_t& seq) {
    ASSERT_TRUE(TryPut(log, bytes, seq));
  }
  // The same; false if it is not kept.
  static bool TryPut(RankLog& log, const std::string& bytes, uint64_t& seq) {
    const Placed placed = log.PutPayload(HashOf(bytes), AsBytes(bytes), 4);
    if (!placed.kept) return false;
    Snapshot snapshot;
    snapshot.name = "x";
    snapshot.tensor.hash = HashOf(bytes);
    snapshot.tensor.payload = static_cast<uint32_t>(PayloadState::kKept);
    snapshot.tensor.segment = placed.segment;
    EventSink* sink = log.ClaimSink(0);
    EXPECT_TRUE(sink->Append(AsBytes(EncodeEventToString(EventHead{0, seq++, seq}, snapshot))));
    log.ReleaseSink(sink);
    return true;
  }
  static void Begin(RankLog& log, uint64_t step, uint64_t& seq) {
    EventSink* sink = log.ClaimSink(0);
    ASSERT_TRUE(sink->Append(AsBytes(EncodeEventToString(EventHead{0, seq++, seq}, Step{step}))));
    log.ReleaseSink(sink);
    log.BeginStep(step);
  }
  std::unique_ptr<RankReader> Open(uint32_t rank = 0) {
    auto reader = RankReader::Open(Folder(rank));
    EXPECT_TRUE(reader) << reader.error().message;
    return std::move(*reader);
  }
  [[nodiscard]] std::string Folder(uint32_t rank = 0) const {
    return dir_ / ("rank-0000" + std::to_string(rank));
  }
  static bool Has(const RankReader& reader, const std::string& bytes) {
    if (reader.PayloadSize(HashOf(bytes)) != bytes.size()) return false;
    return reader.StreamPayload(HashOf(bytes), [](std::span<const std::byte>) {}).has_value();
  }
  VerifyReport Check() {
    auto trace = Trace::Open(dir_.path());
    EXPECT_TRUE(trace);
    auto report = Verify(**trace, {});
    EXPECT_TRUE(report);
    for (const VerifyProblem& problem : report->problems) ADD_FAILURE() << problem.what;
    return *report;
  }

  // Another process has used up the budget.
  void UseUp(uint64_t budget) {
    const auto ledger = DiskLedger::Open(tails_.path(), kJob, {budget, budget});
    ASSERT_NE(ledger, nullptr);
    ledger->Publish(budget);
  }
  // Where the events say that contents are; if the reader has them.
  static std::vector<Placed> Snapshots(const RankReader& reader) {
    std::vector<Placed> placed;
    const auto cursor = reader.Events();
    while (const Event* event = cursor->Next()) {
      if (const auto* snapshot = event->As<Snapshot>()) {
        const bool kept = reader.PayloadSize(snapshot->tensor.hash).has_value();
        placed.push_back({kept, snapshot->tensor.segment});
      }
    }
    return placed;
  }
  void CheckThatAllIsThereOrDropped() {
    const auto reader = Open();
    for (const Placed& placed : Snapshots(*reader))
      EXPECT_TRUE(placed.kept || reader->Dropped(placed.segment)) << "segment " << placed.segment;
    EXPECT_EQ(Check().payloads_missing, 0u);
  }

  uint64_t shared_bytes_ = 0;
  TempDir dir_;
  TempDir tails_;
};

TEST_F(WindowTest, KeepsTheLastStepsAndTheTimeBeforeTheFirst) {
  auto log = Make({.keep_steps = 3});
  uint64_t seq = 0;
  Put(*log, Bytes(0), seq);
  const std::string always = Bytes(77, 7);
  for (uint64_t step = 1; step <= 50; ++step) {
    Begin(*log, step, seq);
    Put(*log, Bytes(step), seq);
    Put(*log, always, seq);
    if (step % 7 == 0) log->Flush();
  }
  log->Flush();
  EXPECT_LE(ListSegments(Folder()).size(), 6u);
  log->Finish();
  const auto reader = Open();
  EXPECT_TRUE(Has(*reader, Bytes(0)));
  EXPECT_TRUE(Has(*reader, always));
  for (uint64_t step = 48; step <= 50; ++step) EXPECT_TRUE(Has(*reader, Bytes(step))) << step;
  EXPECT_FALSE(Has(*reader, Bytes(1)));
  EXPECT_FALSE(Has(*reader, Bytes(40)));
  const Footer& totals = reader->totals();
  EXPECT_EQ(totals.steps, 50u);
  ASSERT_GE(totals.segments.size(), 3u);
  EXPECT_EQ(totals.segments.front().number, 0u);
  EXPECT_EQ(totals.segments.back().last_step, 50u);
  ASSERT_EQ(totals.dropped.size(), 1u);
  EXPECT_EQ(totals.dropped.front().first, 1u);
  EXPECT_GE(totals.payloads_dropped, 40u);
  const VerifyReport report = Check();
  EXPECT_EQ(report.payloads_missing, 0u);
  EXPECT_GE(report.payloads_dropped, 40u);
}

TEST_F(WindowTest, ShortStepsShareFilesAndTheLastOnesAreThere) {
  shared_bytes_ = 40'000;
  WindowOptions window;
  window.keep_steps = 3;
  auto log = Make(window);
  uint64_t seq = 0;
  for (uint64_t step = 1; step <= 100; ++step) {
    Begin(*log, step, seq);
    Put(*log, Bytes(step), seq);
    EXPECT_LE(ListSegments(log->folder()).size(), 4u);
    if (step % 10 == 0) log->Flush();
  }
  const std::string folder = log->folder();
  log->Finish();
  // Ten steps a file; the last ones and what shares a file with them.
  EXPECT_LE(ListSegments(folder).size(), 2u);
  const auto reader = RankReader::Open(folder).value();
  for (uint64_t step = 98; step <= 100; ++step)
    EXPECT_TRUE(reader->PayloadSize(HashOf(Bytes(step)))) << step;
  for (uint64_t step = 1; step <= 70; ++step)
    EXPECT_FALSE(reader->PayloadSize(HashOf(Bytes(step)))) << step;
}

TEST_F(WindowTest, ALostFileIsNotADroppedOne) {
  auto log = Make({.keep_steps = 3});
  uint64_t seq = 0;
  for (uint64_t step = 1; step <= 20; ++step) {
    Begin(*log, step, seq);
    Put(*log, Bytes(step), seq);
    log->Flush();
  }
  log->Finish();
  const std::vector<uint32_t> segments = ListSegments(Folder());
  std::filesystem::remove(Folder() + "/" + SegmentFileName(segments.back()));
  auto trace = Trace::Open(dir_.path());
  ASSERT_TRUE(trace);
  const auto report = Verify(**trace, {});
  ASSERT_TRUE(report);
  EXPECT_EQ(report->payloads_missing, 1u);
  EXPECT_FALSE(report->problems.empty());
}

TEST_F(WindowTest, BytesBoundTheFiles) {
  constexpr uint64_t kLimit = 2 << 20;
  auto log = Make({.keep_bytes = kLimit});
  uint64_t seq = 0;
  for (uint64_t number = 0; number < 400; ++number) {
    Put(*log, Bytes(1, number, 30000), seq);
    if (number % 20 == 0) log->Flush();
  }
  log->Finish();
  uint64_t bytes = 0;
  for (const uint32_t segment : ListSegments(Folder()))
    bytes += std::filesystem::file_size(Folder() + "/" + SegmentFileName(segment));
  EXPECT_LE(bytes, kLimit + (64 << 10));
  EXPECT_GE(bytes, kLimit / 2);
  const auto reader = Open();
  EXPECT_TRUE(Has(*reader, Bytes(1, 399, 30000)));
  EXPECT_TRUE(Has(*reader, Bytes(1, 370, 30000)));
  EXPECT_FALSE(Has(*reader, Bytes(1, 0, 30000)));
  EXPECT_EQ(Check().payloads_missing, 0u);
}

// Two ranks and child processes that come and go: everything that is on the disk counts.
// All of it is put before anything is written.
TEST_F(WindowTest, SegmentsStaySmallHoweverLateWritingIs) {
  constexpr uint64_t kSegmentBytes = 256 << 10;
  auto log = Make({.keep_bytes = 8 * kSegmentBytes});
  uint64_t seq = 0;
  for (uint64_t number = 0; number < 220; ++number) Put(*log, Bytes(1, number), seq);
  log->Flush();
  uint64_t largest = 0;
  for (const uint32_t number : ListSegments(Folder()))
    largest = std::max<uint64_t>(
        largest, std::filesystem::file_size(Folder() + "/" + SegmentFileName(number)));
  EXPECT_LT(largest, 2 * kSegmentBytes);
  EXPECT_GT(ListSegments(Folder()).size(), 2u);
  EXPECT_TRUE(Has(*Open(), Bytes(1, 0)));
}

TEST_F(WindowTest, AllProcessesTogetherStayWithinTheBudget) {
  constexpr uint64_t kBudget = 4 << 20;
  const WindowOptions window{.disk_budget = kBudget};
  const auto on_disk = [&] {
    uint64_t bytes = 0;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(dir_.path()))
      if (entry.is_regular_file()) bytes += entry.file_size();
    return bytes;
  };
  std::unique_ptr<RankLog> ranks[] = {Make(window, 0), Make(window, 1)};
  uint64_t seqs[2] = {};
  std::vector<std::unique_ptr<RankLog>> children;
  for (uint64_t step = 1; step <= 12; ++step) {
    for (uint64_t number = 0; number < 20; ++number) {
      for (uint64_t rank = 0; rank < 2; ++rank)
        Put(*ranks[rank], Bytes(step, number * 2 + rank, 30000), seqs[rank]);
    }
    children.push_back(MakeChild(window));
    for (uint64_t number = 0; number < 30; ++number) {
      const std::string bytes = Bytes(100 + step, number, 30000);
      (void)children.back()->PutPayload(HashOf(bytes), AsBytes(bytes), 4);
      children.back()->Flush();
    }
    if (step % 3 == 0) children[step - 2]->Finish();
    for (const auto& rank : ranks) rank->Flush();
    EXPECT_LE(on_disk(), kBudget) << step;
  }
  for (const auto& child : children) child->Finish();
  for (const auto& rank : ranks) rank->Finish();
  EXPECT_LE(on_disk(), kBudget);
  EXPECT_GE(on_disk(), kBudget / 2);
  EXPECT_TRUE(Has(*Open(1), Bytes(12, 39, 30000)));
}

// The process is killed with the same bytes in an old segment and, for a newer one, in its tail.
TEST_F(WindowTest, RecoveryKeepsAgainWhatOnlyAnOlderSegmentHas) {
  constexpr uint64_t kSteps = 4;
  const pid_t pid = fork();
  ASSERT_GE(pid, 0);
  if (pid == 0) {
    auto log = Make({.keep_steps = kSteps});
    uint64_t seq = 0;
    for (uint64_t step = 1; step <= kSteps; ++step) {
      Begin(*log, step, seq);
      Put(*log, step == kSteps ? Bytes(1) : Bytes(step), seq);
      if (step < kSteps) log->Flush();
    }
    kill(getpid(), SIGKILL);
  }
  ASSERT_EQ(waitpid(pid, nullptr, 0), pid);
  ASSERT_TRUE(RecoverRank(Folder(), {}));
  uint64_t freed = 0;
  const uint32_t newest = ListSegments(Folder()).back();
  ASSERT_TRUE(DropSegments(
      Folder(), [&](const Segment& segment) { return segment.number < newest; }, "", freed));
  EXPECT_GT(freed, 0u);
  const auto reader = Open();
  EXPECT_TRUE(Has(*reader, Bytes(1)));
  EXPECT_FALSE(Has(*reader, Bytes(2)));
  EXPECT_EQ(Check().payloads_missing, 0u);
}

// A rank that was killed while its last step was still in its tail, which is larger than all that
// could go for it.
TEST_F(WindowTest, PayloadsWithoutRoomInRecoveryAreReportedAsDropped) {
  constexpr uint64_t kBudget = 1 << 20;
  constexpr uint64_t kSteps = 7;
  const auto bytes_of = [](uint64_t step) { return Bytes(step, 0, step < kSteps ? 4000 : 200000); };
  const pid_t pid = fork();
  ASSERT_GE(pid, 0);
  if (pid == 0) {
    auto log = Make({.keep_steps = kSteps, .disk_budget = kBudget});
    uint64_t seq = 0;
    for (uint64_t step = 1; step <= kSteps; ++step) {
      Begin(*log, step, seq);
      Put(*log, bytes_of(step), seq);
      if (step < kSteps) log->Flush();
    }
    kill(getpid(), SIGKILL);
  }
  ASSERT_EQ(waitpid(pid, nullptr, 0), pid);
  UseUp(kBudget);

  ASSERT_TRUE(RecoverRank(Folder(), {}));
  EXPECT_FALSE(Has(*Open(), bytes_of(kSteps)));
  EXPECT_EQ(Snapshots(*Open()).size(), kSteps);
  CheckThatAllIsThereOrDropped();
}

// A rank to which others had left nothing while it was far behind with writing. It had made room in
// the segment of the program's current place, which has nothing yet. It was killed with some of the
// earlier segments in its tail, which never had a file.
TEST_F(WindowTest, PayloadsOfASegmentThatNeverWasAreReportedAsDropped) {
  constexpr uint64_t kBudget = 1 << 20;
  constexpr uint64_t kSteps = 9;
  bool was_so = false;
  // The background thread may look in between, and then is not behind.
  for (int attempt = 0; attempt < 20 && !was_so; ++attempt) {
    for (const TempDir* dir : {&dir_, &tails_})
      for (const std::string& name : ListDir(dir->path())) std::filesystem::remove_all(*dir / name);
    const pid_t pid = fork();
    ASSERT_GE(pid, 0);
    if (pid == 0) {
      auto log = Make({.keep_steps = kSteps, .disk_budget = kBudget});
      uint64_t seq = 0;
      Begin(*log, 1, seq);
      Put(*log, Bytes(1, 1), seq);
      log->Flush();
      UseUp(kBudget);
      bool kept = TryPut(*log, Bytes(1, 2), seq);
      for (uint64_t step = 2; kept && step <= kSteps; ++step) {
        Begin(*log, step, seq);
        if (step < kSteps) kept = TryPut(*log, Bytes(step), seq);
      }
      log->Flush();
      kill(getpid(), SIGKILL);
    }
    ASSERT_EQ(waitpid(pid, nullptr, 0), pid);
    const uint32_t newest = ListSegments(Folder()).back();
    {
      const auto reader = Open();
      for (const Placed& placed : Snapshots(*reader))
        was_so |= placed.segment < newest && !reader->Dropped(placed.segment);
    }
    ASSERT_TRUE(RecoverRank(Folder(), {}));
    CheckThatAllIsThereOrDropped();
  }
  EXPECT_TRUE(was_so);
}

TEST_F(WindowTest, AMarkedWindowStaysWhileTheNextOneMoves) {
  auto log = Make({.keep_steps = 2});
  uint64_t seq = 0;
  for (uint64_t step = 1; step <= 30; ++step) {
    Begin(*log, step, seq);
    Put(*log, Bytes(step), seq);
    if (step == 10) {
      ASSERT_EQ(LeaveMark(dir_.path(), "the loss jumped").value_or(0), 1u);
    }
    log->Flush();
  }
  log->Finish();
  const auto reader = Open();
  for (const uint64_t step : {9, 10, 29, 30}) EXPECT_TRUE(Has(*reader, Bytes(step))) << step;
  for (const uint64_t step : {1, 5, 15, 25}) EXPECT_FALSE(Has(*reader, Bytes(step))) << step;
  const auto marked = [](const Segment& segment) { return segment.marked != 0; };
  EXPECT_TRUE(
      std::any_of(reader->totals().segments.begin(), reader->totals().segments.end(), marked));
  EXPECT_FALSE(reader->totals().segments.back().marked);
  EXPECT_EQ(Check().payloads_missing, 0u);
}

TEST_F(WindowTest, AMarkKeepsWhatWasThereWhenItWasLeft) {
  auto log = Make({.keep_steps = 2});
  uint64_t seq = 0;
  for (uint64_t step = 1; step <= 30; ++step) {
    Begin(*log, step, seq);
    Put(*log, Bytes(step), seq);
    if (step <= 10) log->Flush();  // all that comes later is written in one go
    if (step == 10) {
      ASSERT_EQ(LeaveMark(dir_.path(), "the loss jumped").value_or(0), 1u);
    }
  }
  log->Finish();
  const auto reader = Open();
  for (const uint64_t step : {9, 10, 29, 30}) EXPECT_TRUE(Has(*reader, Bytes(step))) << step;
  for (const uint64_t step : {1, 5}) EXPECT_FALSE(Has(*reader, Bytes(step))) << step;
}

TEST_F(WindowTest, ASignalLeavesOneMark) {
  for (int i = 0; i < 3; ++i) LeaveMarkIfNoneIsNew(dir_.path().c_str(), "told to end");
  EXPECT_EQ(ReadMark(dir_.path(), 1), "told to end");
  EXPECT_EQ(ReadMark(dir_.path(), 2), "");
  EXPECT_EQ(LeaveMark(dir_.path(), "another").value_or(0), 2u);
  // An old one says nothing about what happens now.
  for (const uint64_t number : {1, 2}) {
    const timespec long_ago[2] = {{1000, 0}, {1000, 0}};
    ASSERT_EQ(utimensat(AT_FDCWD, MarkPath(dir_.path(), number).c_str(), long_ago, 0), 0);
  }
  LeaveMarkIfNoneIsNew(dir_.path().c_str(), "told to end");
  EXPECT_EQ(ReadMark(dir_.path(), 3), "told to end");
  RemoveMarks(dir_.path());
}

TEST_F(WindowTest, RanksAtDifferentStepsKeepWhatTheOtherOneNeeds) {
  auto fast = Make({.keep_steps = 3}, 0, 1);
  auto slow = Make({.keep_steps = 3}, 1, 1);
  uint64_t fast_seq = 0;
  uint64_t slow_seq = 0;
  constexpr uint64_t kBehind = 10;
  constexpr uint64_t kSteps = 40;
  for (uint64_t step = 1; step <= kSteps; ++step) {
    Begin(*fast, step, fast_seq);
    Put(*fast, Bytes(step), fast_seq);
    fast->Flush();
    if (step <= kBehind) continue;
    Begin(*slow, step - kBehind, slow_seq);
    Put(*slow, Bytes(step - kBehind), slow_seq);
    Put(*slow, Bytes(step), slow_seq);  // what the fast one has kept just now
    slow->Flush();
  }
  EXPECT_LE(ListSegments(Folder(0)).size(), kBehind + 6);
  fast->Finish();
  slow->Finish();
  const auto fast_reader = Open(0);
  const auto slow_reader = Open(1);
  for (uint64_t step = kSteps - 2; step <= kSteps; ++step) {
    EXPECT_TRUE(Has(*fast_reader, Bytes(step))) << step;
    EXPECT_TRUE(Has(*slow_reader, Bytes(step))) << step;
    EXPECT_TRUE(Has(*slow_reader, Bytes(step - kBehind))) << step;
  }
  EXPECT_FALSE(Has(*fast_reader, Bytes(1)));
  EXPECT_EQ(Check().payloads_missing, 0u);
}

}  // namespace
}  // namespace deja::format
