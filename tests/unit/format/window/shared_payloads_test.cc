// Several ranks of one job on one machine that keep payloads together, from PutPayload to readers
// and bundles.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include "format/log/rank_log.h"
#include "format/pack/bundle_writer.h"
#include "format/reader/rank_reader.h"
#include "format/repair/recovery.h"
#include "format/tail/job_memory.h"
#include "format/tail/tail.h"
#include "format/trace/trace.h"
#include "format/trace/verify.h"
#include "format/window/disk_ledger.h"
#include "format/window/shared_pieces.h"
#include "format/window/window_board.h"
#include "format/wire/message_codec.h"
#include "tests/unit/format/log/rank_scan.h"

namespace deja::format {
namespace {

constexpr char kSharingJob[] = "00112233445566778899aabbccddeeff";

class SharedPayloadsTest : public ::testing::Test {
 protected:
  void MakeRanks(uint32_t ranks, uint32_t copies = 1) {
    for (uint32_t rank = 0; rank < ranks; ++rank) {
      RankLogOptions options;
      options.trace_dir = dir_.path();
      options.tail_dir = tails_.path();
      options.job_id = kSharingJob;
      options.payload_bytes = 16 << 20;
      options.copies = copies;
      auto log = RankLog::Create(options);
      ASSERT_TRUE(log) << log.error().message;
      TraceHeader header;
      header.rank = rank;
      header.world_size = ranks;
      header.job_id = kSharingJob;
      ASSERT_TRUE((*log)->BecomeRank(header));
      logs_.push_back(std::move(*log));
    }
  }
  bool Put(size_t rank, const std::string& bytes) {
    // What names it, so that it is referred to.
    const bool kept = logs_[rank]->PutPayload(HashOf(bytes), AsBytes(bytes), 4).kept;
    CallResults results;
    results.outputs.push_back({});
    results.outputs[0].hash = HashOf(bytes);
    results.outputs[0].payload = static_cast<uint32_t>(PayloadState::kKept);
    const EventHead head{0, seq_[rank]++, 1};
    return kept && logs_[rank]->ClaimSink(0)->Append(AsBytes(EncodeEventToString(head, results)));
  }
  void Finish() {
    for (auto& log : logs_) log->Finish();
  }
  [[nodiscard]] std::string Folder(uint32_t rank) const {
    return dir_ / ("rank-0000" + std::to_string(rank));
  }
  static std::string Read(const RankReader& reader, const std::string& bytes) {
    const auto size = reader.PayloadSize(HashOf(bytes));
    if (!size) return "is not there";
    std::string out(*size, '\0');
    const Status read =
        reader.ReadPayload(HashOf(bytes), {reinterpret_cast<std::byte*>(out.data()), out.size()});
    return read ? out : read.error().message;
  }
  // From each rank's folder alone.
  void ExpectReadable(const std::vector<std::string>& payloads, uint32_t ranks) {
    for (uint32_t rank = 0; rank < ranks; ++rank) {
      auto reader = RankReader::Open(Folder(rank));
      ASSERT_TRUE(reader) << reader.error().message;
      for (const std::string& bytes : payloads) {
        ASSERT_TRUE(Read(**reader, bytes) == bytes) << "rank " << rank << ", " << bytes.size();
      }
    }
  }
  // Bytes of payloads in all folders together.
  uint64_t KeptBytes(uint32_t ranks) {
    uint64_t bytes = 0;
    for (uint32_t rank = 0; rank < ranks; ++rank) {
      auto reader = RankReader::Open(Folder(rank));
      if (!reader) continue;
      bytes += (*reader)->totals().payload_bytes + (*reader)->totals().partial_payload_bytes;
    }
    return bytes;
  }
  Result<VerifyReport> Verified() {
    auto trace = Trace::Open(dir_.path());
    if (!trace) return tl::unexpected(trace.error());
    return Verify(**trace, {});
  }

  TempDir dir_;
  TempDir tails_;
  std::vector<std::unique_ptr<RankLog>> logs_;
  uint64_t seq_[8] = {};
};

TEST_F(SharedPayloadsTest, TheSameBytesAreKeptOnce) {
  MakeRanks(3);
  const std::vector<std::string> payloads = {SomeBytes(1, 512), SomeBytes(2, 100000),
                                             SomeBytes(3, (3 << 20) + 77)};
  for (const std::string& bytes : payloads) {
    for (size_t rank = 0; rank < 3; ++rank) ASSERT_TRUE(Put(rank, bytes));
  }
  Finish();
  ExpectReadable(payloads, 3);
  EXPECT_EQ(KeptBytes(3), 512u + 100000u + (3 << 20) + 77);
  const auto report = Verified();
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_TRUE(report->problems.empty()) << report->problems[0].what;
  EXPECT_EQ(report->payloads, 3u);
  EXPECT_EQ(report->payloads_missing, 0u);
}

TEST_F(SharedPayloadsTest, OtherBytesAreKeptByTheirRank) {
  MakeRanks(2);
  std::string bytes = SomeBytes(1, 2 << 20);
  ASSERT_TRUE(Put(0, bytes));
  std::string changed = bytes;
  changed[1234567] ^= 1;
  ASSERT_TRUE(Put(1, changed));
  Finish();
  ExpectReadable({bytes, changed}, 2);
  EXPECT_EQ(KeptBytes(2), 2 * bytes.size());
}

TEST_F(SharedPayloadsTest, SmallOnesAreKeptByAll) {
  MakeRanks(2);
  const std::string bytes = SomeBytes(1, 100);
  ASSERT_TRUE(Put(0, bytes));
  ASSERT_TRUE(Put(1, bytes));
  Finish();
  EXPECT_EQ(KeptBytes(2), 200u);
}

TEST_F(SharedPayloadsTest, LargeOnesAreSplitAndPutTogether) {
  MakeRanks(4);
  const std::string bytes = SomeBytes(5, (9 << 20) + 12345);
  std::vector<std::thread> threads;
  for (size_t rank = 0; rank < 4; ++rank) {
    threads.emplace_back([&, rank] { EXPECT_TRUE(Put(rank, bytes)); });
  }
  for (std::thread& thread : threads) thread.join();
  // While nothing of it need be in the folders yet, and when it is.
  ExpectReadable({bytes}, 4);
  Finish();
  ExpectReadable({bytes}, 4);
}

TEST_F(SharedPayloadsTest, ManyRanksInStep) {
  constexpr uint32_t kRanks = 4;
  MakeRanks(kRanks);
  std::vector<std::string> payloads;
  uint64_t total = 0;
  for (uint64_t i = 0; i < 60; ++i) {
    payloads.push_back(SomeBytes(100 + i, i % 10 == 0 ? (2 << 20) + i : 600 + i * 1000));
    total += payloads.back().size();
  }
  std::vector<std::thread> threads;
  for (size_t rank = 0; rank < kRanks; ++rank) {
    threads.emplace_back([&, rank] {
      for (const std::string& bytes : payloads) EXPECT_TRUE(Put(rank, bytes));
    });
  }
  for (std::thread& thread : threads) thread.join();
  Finish();
  ExpectReadable(payloads, kRanks);
  EXPECT_GE(KeptBytes(kRanks), total);
  const auto report = Verified();
  ASSERT_TRUE(report);
  EXPECT_TRUE(report->problems.empty()) << report->problems[0].what;
}

TEST_F(SharedPayloadsTest, AMissingFolderIsSaidToCostSomething) {
  MakeRanks(3);
  const std::string bytes = SomeBytes(1, 50000);
  const std::string other = SomeBytes(2, 50000);
  for (size_t rank : {1, 0, 2}) ASSERT_TRUE(Put(rank, bytes));
  for (size_t rank : {0, 1, 2}) ASSERT_TRUE(Put(rank, other));
  Finish();
  std::filesystem::remove_all(Folder(1));
  const auto report = Verified();
  ASSERT_TRUE(report);
  EXPECT_EQ(report->payloads_missing, 2u);
  ASSERT_EQ(report->problems.size(), 2u);
  EXPECT_EQ(report->problems[0].rank, 0u);
  EXPECT_NE(report->problems[0].what.find("1 of 1 payloads"), std::string::npos)
      << report->problems[0].what;
  EXPECT_NE(report->problems[0].what.find("not in the trace: rank 1"), std::string::npos);
  EXPECT_EQ(report->problems[1].rank, 2u);
  EXPECT_NE(report->problems[1].what.find("1 of 2 payloads"), std::string::npos)
      << report->problems[1].what;
}

TEST_F(SharedPayloadsTest, ASecondCopyOutlivesAFolder) {
  MakeRanks(4, /*copies=*/2);
  const std::vector<std::string> payloads = {SomeBytes(1, 50000), SomeBytes(3, 3 << 20)};
  for (const std::string& bytes : payloads) {
    for (size_t rank = 0; rank < 4; ++rank) ASSERT_TRUE(Put(rank, bytes));
  }
  Finish();
  EXPECT_EQ(KeptBytes(4), 2u * (50000 + (3 << 20)));
  std::filesystem::remove_all(Folder(0));
  const auto report = Verified();
  ASSERT_TRUE(report);
  EXPECT_TRUE(report->problems.empty()) << report->problems[0].what;
}

TEST_F(SharedPayloadsTest, DamagedPiecesAreFound) {
  MakeRanks(2);
  const std::string bytes = SomeBytes(5, 4 << 20);
  ASSERT_TRUE(Put(0, bytes));
  std::vector<std::thread> threads;
  const std::string together = SomeBytes(6, 8 << 20);
  for (size_t rank = 0; rank < 2; ++rank) {
    threads.emplace_back([&, rank] { EXPECT_TRUE(Put(rank, together)); });
  }
  for (std::thread& thread : threads) thread.join();
  Finish();
  const std::string path = Folder(0) + "/payloads.deja";
  FILE* file = fopen(path.c_str(), "r+b");
  ASSERT_NE(file, nullptr);
  fseek(file, 2 << 20, SEEK_SET);
  fputs("damage", file);
  fclose(file);
  const auto report = Verified();
  ASSERT_TRUE(report);
  EXPECT_FALSE(report->problems.empty());
  auto reader = RankReader::Open(Folder(1));
  ASSERT_TRUE(reader);
  EXPECT_TRUE(Read(**reader, bytes) != bytes);
}

TEST_F(SharedPayloadsTest, ABundleOfARunningJobHasThePieces) {
  MakeRanks(3);
  const std::string bytes = SomeBytes(5, (6 << 20) + 5);
  std::vector<std::thread> threads;
  for (size_t rank = 0; rank < 3; ++rank) {
    threads.emplace_back([&, rank] { EXPECT_TRUE(Put(rank, bytes)); });
  }
  for (std::thread& thread : threads) thread.join();
  TempDir bundles;
  const std::string path = bundles / "run.deja.zip";
  const auto written = WriteBundle(dir_.path(), path);
  ASSERT_TRUE(written) << written.error().message;
  Finish();
  auto trace = Trace::Open(path);
  ASSERT_TRUE(trace) << trace.error().message;
  for (uint32_t rank = 0; rank < 3; ++rank) {
    auto reader = (*trace)->Rank(rank);
    ASSERT_TRUE(reader);
    EXPECT_EQ((*reader)->end().state, EndState::kCleanEnd);
    EXPECT_TRUE(Read(**reader, bytes) == bytes) << rank;
  }
  const auto report = Verify(**trace, {});
  ASSERT_TRUE(report);
  EXPECT_TRUE(report->problems.empty()) << report->problems[0].what;
}

TEST_F(SharedPayloadsTest, TheTableGoesWithTheLastTail) {
  MakeRanks(2);
  ASSERT_TRUE(Put(0, SomeBytes(1, 5000)));
  setenv("DEJA_TAIL_DIR", tails_.path().c_str(), 1);
  ASSERT_TRUE(RemoveOrphanTails(dir_.path(), kSharingJob));
  EXPECT_EQ(ListDir(tails_.path()).size(), 4u) << "in use: two tails, the table, the board";
  Finish();
  ASSERT_TRUE(RemoveOrphanTails(dir_.path(), kSharingJob));
  EXPECT_TRUE(ListDir(tails_.path()).empty());
}

TEST(OldJobMemoryTest, MemoryWithoutAProcessGoesWhenItIsOld) {
  const TempDir dir;
  const std::string over(32, 'a');
  const std::string living(32, 'b');
  const auto make = [&](const std::string& name) { std::ofstream(dir / name) << "text"; };
  for (const std::string& job : {over, living}) {
    make(DiskLedgerName(job));
    make(SharedPiecesName(job));
    make(WindowBoardName(job));
    make(JobPipesName(job));
  }
  make(TailNamePrefix(living) + "17-0011aabb" + kTailNameSuffix);
  make("deja-notes.tail");
  EXPECT_EQ(RemoveOldJobMemory(dir.path(), 3600), 0) << "they may be new";
  EXPECT_EQ(RemoveOldJobMemory(dir.path(), 0), 4);
  EXPECT_EQ(ListDir(dir.path()).size(), 6u);
  EXPECT_EQ(RemoveOldJobMemory(dir.path(), 0), 0);
}

}  // namespace
}  // namespace deja::format
