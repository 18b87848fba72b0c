// Kills recording processes at random moments. Whatever Append and PutPayload had accepted by then
// must be readable, in order: from the folder and the tail as they are, and after recovery.
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <filesystem>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "format/log/rank_log.h"
#include "format/reader/rank_reader.h"
#include "format/wire/message_codec.h"
#include "tests/support/kill_test.h"

namespace deja::format {
namespace {

constexpr uint32_t kThreads = 3;

struct Progress {
  std::atomic<uint64_t> is_rank;
  std::atomic<uint64_t> events[kThreads];
  std::atomic<uint64_t> payloads[kThreads];
};

struct Plan {
  uint64_t seed = 0;
  uint64_t ring_bytes = 64 << 10;
  uint64_t payload_bytes = 1 << 20;
  uint64_t events_before_rank = 0;
  uint64_t largest_payload = 100000;
  uint64_t payload_every = 8;
  bool series = false;  // payloads of a thread differ little from one another
  uint32_t kill_after_us = 0;
};

std::string EventText(const Plan& plan, uint32_t thread, uint64_t seq) {
  const uint64_t seed = plan.seed + thread * 1000003 + seq;
  return SomeBytes(seed, seed % 700);
}

std::string Payload(const Plan& plan, uint32_t thread, uint64_t number) {
  const uint64_t seed = plan.seed * 31 + thread * 1000003 + number;
  if (plan.series) {
    std::string bytes = SomeBytes(plan.seed + thread, plan.largest_payload);
    for (uint64_t i = 0; i < number; ++i) bytes[(seed + i) * 7919 % bytes.size()] += 1;
    return bytes;
  }
  return SomeBytes(seed, seed * 7919 % plan.largest_payload);
}

void WriteUntilKilled(RankLog& log, const Plan& plan, uint32_t thread, Progress& progress) {
  EventSink* sink = log.ClaimSink(thread);
  for (uint64_t seq = 0;; ++seq) {
    if (thread == 0 && seq == plan.events_before_rank) {
      if (!log.BecomeRank({})) _exit(3);
      progress.is_rank.store(1);
    }
    if (seq % plan.payload_every == 0) {
      const uint64_t number = seq / plan.payload_every;
      const std::string bytes = Payload(plan, thread, number);
      const uint32_t series = plan.series ? thread + 1 : 0;
      if (!log.PutPayload(HashOf(bytes), AsBytes(bytes), 4, series).kept) _exit(4);
      progress.payloads[thread].store(number + 1);
    }
    const std::string text = EventText(plan, thread, seq);
    const bool raw = seq % 3 != 0 && sink->AppendRaw({thread, seq, 1}, Note{text});
    if (!raw && !sink->Append(AsBytes(NoteEvent(thread, seq, text)))) _exit(5);
    progress.events[thread].store(seq + 1);
  }
}

[[noreturn]] void Child(const RankLogOptions& options, const Plan& plan, Progress& progress) {
  auto log = RankLog::Create(options);
  if (!log) _exit(2);
  std::vector<std::thread> threads;
  for (uint32_t t = 1; t < kThreads; ++t) {
    threads.emplace_back(WriteUntilKilled, std::ref(**log), plan, t, std::ref(progress));
  }
  WriteUntilKilled(**log, plan, 0, progress);
  _exit(6);
}

void CheckScan(const RankScan& scan, const Plan& plan, const Progress& progress) {
  ASSERT_EQ(scan.problem, "");
  for (uint32_t t = 0; t < kThreads; ++t) {
    const std::vector<std::string> notes = scan.Notes(t);
    // One more may have been appended and not been counted.
    ASSERT_GE(notes.size(), progress.events[t].load()) << "thread " << t;
    ASSERT_LE(notes.size(), progress.events[t].load() + 1) << "thread " << t;
    for (uint64_t seq = 0; seq < notes.size(); ++seq) {
      ASSERT_EQ(notes[seq], EventText(plan, t, seq)) << "thread " << t << ", event " << seq;
    }
    for (uint64_t number = 0; number < progress.payloads[t].load(); ++number) {
      const std::string bytes = Payload(plan, t, number);
      const auto found = scan.payloads.find(HashOf(bytes));
      ASSERT_NE(found, scan.payloads.end()) << "thread " << t << ", payload " << number;
      ASSERT_EQ(found->second, bytes);
    }
  }
}

void CheckReader(const std::string& folder, const Progress& progress, bool recovered) {
  auto reader = RankReader::Open(folder);
  ASSERT_TRUE(reader) << reader.error().message;
  uint64_t events = 0;
  const auto cursor = (*reader)->Events();
  while (cursor->Next() != nullptr) ++events;
  uint64_t expected = 0;
  for (const auto& count : progress.events) expected += count.load();
  EXPECT_GE(events, expected);
  EXPECT_LE(events, expected + kThreads);
  EXPECT_EQ((*reader)->totals().events, events);
  if (recovered) {
    EXPECT_EQ((*reader)->end().state, EndState::kCleanEnd) << (*reader)->end().detail;
    EXPECT_EQ((*reader)->totals().swept, 1u);
    EXPECT_EQ((*reader)->totals().fate.signal, static_cast<uint32_t>(SIGKILL));
  }
}

uint64_t FolderBytes(const std::string& folder) {
  uint64_t bytes = 0;
  for (const std::string& name : ListDir(folder)) {
    bytes += std::filesystem::file_size(folder + "/" + name);
  }
  return bytes;
}

class KillWriterTest : public KillTest<Progress> {
 protected:
  void RunAndKill(const Plan& plan) {
    RankLogOptions options;
    options.trace_dir = dir_.path();
    options.tail_dir = tails_.path();
    options.job_id = kKillJob;
    options.ring_bytes = plan.ring_bytes;
    options.payload_bytes = plan.payload_bytes;
    options.base_memory = 1 << 20;
    const pid_t child = Fork([&] { Child(options, plan, *progress_); });
    ASSERT_GT(child, 0);
    usleep(plan.kill_after_us);
    Kill(child);
  }

  void CheckAfterKill(const Plan& plan) {
    const std::string folder = Folder(0);
    if (std::filesystem::exists(folder)) {
      CheckScan(ScanRank(folder, true), plan, *progress_);
      if (HasFatalFailure()) return;
      CheckReader(folder, *progress_, false);

      ProcessFate fate;
      fate.known = true;
      fate.exit_code = -1;
      fate.signal = SIGKILL;
      const auto report = RecoverRank(folder, fate);
      ASSERT_TRUE(report) << report.error().message;
      EXPECT_FALSE(report->was_finished);
      const RankScan scan = ScanRank(folder, false);
      EXPECT_TRUE(scan.finished);
      EXPECT_EQ(scan.bad_bytes, 0u);
      CheckScan(scan, plan, *progress_);
      CheckReader(folder, *progress_, true);

      const uint64_t bytes = FolderBytes(folder);
      const auto again = RecoverRank(folder, fate);
      ASSERT_TRUE(again) << again.error().message;
      EXPECT_TRUE(again->was_finished);
      EXPECT_EQ(FolderBytes(folder), bytes) << "recovery of a finished folder changed it";
    } else {
      EXPECT_EQ(progress_->is_rank.load(), 0u);
    }
    EXPECT_LE(ListDir(dir_.path()).size(), 1u);
    CleanUp();
  }
};

TEST_P(KillWriterTest, NothingThatWasAcceptedIsLost) {
  Rounds(40, 17, [&](std::mt19937_64& random) {
    Plan plan;
    plan.seed = random();
    plan.ring_bytes = uint64_t{64} << (10 + random() % 3);
    plan.payload_bytes = uint64_t{256} << (10 + random() % 5);
    plan.events_before_rank = random() % 3 == 0 ? random() % 4000 : 0;
    plan.largest_payload = random() % 4 == 0 ? 2000000 : 30000;
    plan.payload_every = 1 + random() % 40;
    plan.series = random() % 3 == 0;
    plan.kill_after_us = static_cast<uint32_t>(random() % 60000);
    RunAndKill(plan);
    if (HasFatalFailure()) return;
    CheckAfterKill(plan);
  });
}

INSTANTIATE_TEST_SUITE_P(Piece, KillWriterTest, ::testing::Range(0, kKillPieces));

class RecoveryTest : public KillWriterTest {};

TEST_P(RecoveryTest, RecoveryRefusesWhileTheWriterLives) {
  RankLogOptions options;
  options.trace_dir = dir_.path();
  options.tail_dir = tails_.path();
  auto log = RankLog::Create(options);
  ASSERT_TRUE(log);
  ASSERT_TRUE((*log)->BecomeRank({}));
  const auto report = RecoverRank((*log)->folder(), {});
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().code, ErrorCode::kInvalidArgument);
  (*log)->Finish();
}

TEST_P(RecoveryTest, ATornFrameIsCutAndTheFateIsAdded) {
  Plan plan;
  plan.kill_after_us = 30000;
  const std::string folder = dir_ / "rank-00000";
  const std::string events = folder + "/events.deja";
  char head[200] = {};
  // What was accepted need not have been written yet.
  do {
    std::filesystem::remove_all(folder);
    new (progress_) Progress{};
    RunAndKill(plan);
    plan.kill_after_us *= 2;
  } while (
      (progress_->events[0].load() < 100 || std::filesystem::file_size(events) < 8 + sizeof head) &&
      !HasFatalFailure());
  // Half a frame behind the whole ones, as a write that SIGKILL interrupts leaves it.
  FILE* file = fopen(events.c_str(), "r+b");
  ASSERT_NE(file, nullptr);
  ASSERT_EQ(fseek(file, 8, SEEK_SET), 0);
  ASSERT_EQ(fread(head, 1, sizeof head, file), sizeof head);
  fseek(file, 0, SEEK_END);
  ASSERT_EQ(fwrite(head, 1, 40, file), 40u);
  fclose(file);
  const auto report = RecoverRank(folder, {});
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_GE(report->torn_bytes_cut, 40u);
  CheckScan(ScanRank(folder, false), plan, *progress_);
  EXPECT_FALSE(ScanRank(folder, false).footer.fate.known);

  ProcessFate fate;
  fate.known = true;
  fate.signal = SIGKILL;
  const auto again = RecoverRank(folder, fate);
  ASSERT_TRUE(again) << again.error().message;
  const RankScan scan = ScanRank(folder, false);
  EXPECT_TRUE(scan.finished);
  EXPECT_TRUE(scan.footer.fate.known);
  EXPECT_EQ(scan.footer.fate.signal, static_cast<uint32_t>(SIGKILL));
  CheckScan(scan, plan, *progress_);
}

INSTANTIATE_TEST_SUITE_P(Once, RecoveryTest, ::testing::Values(0));

}  // namespace
}  // namespace deja::format
