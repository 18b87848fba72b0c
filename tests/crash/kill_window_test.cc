// Kills ranks with a window at random moments, most of them while segments begin and go. What was
// in the window of each must be readable, and what is missing must be reported as dropped. That
// holds for folders and tails as they are, and after recovery.
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <random>
#include <string>

#include "format/layout/mark.h"
#include "format/layout/payload_segments.h"
#include "format/log/rank_log.h"
#include "format/reader/rank_reader.h"
#include "format/trace/trace.h"
#include "format/trace/verify.h"
#include "format/wire/message_codec.h"
#include "tests/support/kill_test.h"

namespace deja::format {
namespace {

constexpr uint32_t kMaxRanks = 2;

struct Plan {
  uint64_t seed = 0;
  uint32_t ranks = 1;
  uint64_t keep_steps = 3;
  uint64_t per_step = 4;
  uint64_t size = 20000;
  uint64_t flush_every = 1;
  bool mark = false;
  uint64_t shared_bytes = 0;
  uint64_t budget = 0;  // 0: none
};

struct Progress {
  std::atomic<uint64_t> payloads[kMaxRanks];  // accepted, and their events appended
};

// Half of what a step has is the same in all ranks; one payload is the same in all steps.
std::string Payload(const Plan& plan, uint32_t rank, uint64_t number) {
  if (number % plan.per_step == 0) return SomeBytes(plan.seed, plan.size);
  const uint64_t owner = number % 2 == 0 ? 0 : rank + 1;
  return SomeBytes(plan.seed * 31 + number * 3 + owner, plan.size - number % 7);
}

class KillWindowTest : public KillTest<Progress> {
 protected:
  [[noreturn]] void Child(const Plan& plan, uint32_t rank) {
    RankLogOptions options;
    options.trace_dir = dir_.path();
    options.tail_dir = tails_.path();
    options.job_id = kKillJob;
    options.payload_bytes = 1 << 20;
    options.copies = plan.ranks > 1 ? 1 : 0;
    options.window.keep_steps = plan.keep_steps;
    options.window.shared_bytes = plan.shared_bytes;
    options.window.disk_budget = plan.budget;
    auto log = RankLog::Create(options);
    if (!log) _exit(2);
    TraceHeader header;
    header.rank = rank;
    header.world_size = plan.ranks;
    if (!(*log)->BecomeRank(header)) _exit(3);
    EventSink* sink = (*log)->ClaimSink(0);
    uint64_t seq = 0;
    for (uint64_t number = 0;; ++number) {
      if (number % plan.per_step == 0) {
        const uint64_t step = number / plan.per_step + 1;
        Append(sink, seq, Step{step});
        (*log)->BeginStep(step);
        if (step % plan.flush_every == 0) (*log)->Flush();
      }
      const std::string bytes = Payload(plan, rank, number);
      if (!TryPut(**log, sink, seq, bytes)) {
        if (plan.budget == 0) _exit(4);
        // Another rank had used up the budget before this one was there, and is dead.
        for (;;) pause();
      }
      progress_->payloads[rank].store(number + 1);
    }
  }

  void RunAndKill(const Plan& plan, std::mt19937_64& random) {
    pid_t children[kMaxRanks] = {};
    for (uint32_t rank = 0; rank < plan.ranks; ++rank) {
      children[rank] = Fork([&] { Child(plan, rank); });
      ASSERT_GT(children[rank], 0);
    }
    if (plan.mark) {
      usleep(static_cast<useconds_t>(random() % 20000));
      ASSERT_TRUE(LeaveMark(dir_.path(), "test"));
    }
    usleep(static_cast<useconds_t>(random() % 30000));
    // On a busy machine little happens in that time: some get as far as a segment that goes.
    const bool waits = plan.size < 1'000'000 && random() % 4 == 0;
    const uint64_t wanted = waits ? random() % (6 * plan.keep_steps * plan.per_step) : 0;
    for (int i = 0; i < 100000 && progress_->payloads[0].load() < wanted; ++i) usleep(100);
    // One dies, the other one goes on for a moment.
    for (uint32_t rank = 0; rank < plan.ranks; ++rank) {
      usleep(static_cast<useconds_t>(random() % 10000));
      Kill(children[rank]);
    }
  }

  void Check(const Plan& plan) {
    for (uint32_t rank = 0; rank < plan.ranks; ++rank) {
      const uint64_t accepted = progress_->payloads[rank].load();
      if (accepted == 0) continue;
      auto reader = RankReader::Open(Folder(rank));
      ASSERT_TRUE(reader) << reader.error().message;
      if (plan.budget == 0) CheckWindow(plan, rank, accepted, **reader);
      CheckEvents(accepted, **reader);
    }
  }

  void CheckWindow(const Plan& plan, uint32_t rank, uint64_t accepted, const RankReader& reader) {
    // The step that was going on may have ended by now, so it is the last that counts for sure.
    const uint64_t last_step = accepted / plan.per_step + 1;
    const uint64_t first_step = last_step < plan.keep_steps ? 1 : last_step - plan.keep_steps + 1;
    for (uint64_t number = (first_step - 1) * plan.per_step; number < accepted; ++number) {
      const std::string bytes = Payload(plan, rank, number);
      const Hash128 hash = HashOf(bytes);
      ASSERT_EQ(reader.PayloadSize(hash), bytes.size())
          << "rank " << rank << ", payload " << number << " of " << accepted;
      const Status read = reader.StreamPayload(hash, [](std::span<const std::byte>) {});
      ASSERT_TRUE(read) << read.error().message;
    }
  }

  uint64_t BytesOnDisk() {
    uint64_t bytes = 0;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(dir_.path()))
      if (entry.is_regular_file()) bytes += entry.file_size();
    return bytes;
  }

  static void CheckEvents(uint64_t accepted, const RankReader& reader) {
    uint64_t snapshots = 0;
    const auto cursor = reader.Events();
    while (const Event* event = cursor->Next()) {
      const auto* snapshot = event->As<Snapshot>();
      if (snapshot == nullptr) continue;
      ++snapshots;
      ASSERT_TRUE(reader.PayloadSize(snapshot->tensor.hash) ||
                  reader.Dropped(snapshot->tensor.segment))
          << "payload " << snapshots << " of " << accepted << ", segment "
          << snapshot->tensor.segment << ", is neither there nor dropped";
    }
    ASSERT_GE(snapshots, accepted);
  }
};

TEST_P(KillWindowTest, PayloadsInTheWindowAreThere) {
  uint64_t dropped = 0;
  Rounds(40, 815, [&](std::mt19937_64& random) {
    Plan plan;
    plan.seed = random();
    plan.ranks = 1 + static_cast<uint32_t>(random() % kMaxRanks);
    plan.keep_steps = 1 + random() % 9;
    plan.per_step = 2 + random() % 5;
    plan.size = random() % 4 == 0 ? 1500000 : 600 + random() % 20000;
    plan.flush_every = 1 + random() % 4;
    plan.mark = random() % 4 == 0;
    plan.shared_bytes = random() % 2 == 0 ? 0 : random() % 100000;
    // Then the window may be shorter, but nothing may be more.
    if (plan.size < 1'000'000 && !plan.mark && random() % 4 == 0) plan.budget = 2 << 20;
    RunAndKill(plan, random);
    if (HasFatalFailure()) return;
    {
      SCOPED_TRACE("before recovery");
      Check(plan);
    }
    if (HasFatalFailure()) return;
    Recover(plan.ranks);
    Check(plan);
    if (plan.budget != 0) {
      ASSERT_LE(BytesOnDisk(), plan.budget);
    }
    if (HasFatalFailure()) return;
    if (auto trace = Trace::Open(dir_.path())) {
      const auto report = Verify(**trace, {});
      ASSERT_TRUE(report);
      for (const VerifyProblem& problem : report->problems) ADD_FAILURE() << problem.what;
      ASSERT_EQ(report->payloads_missing, 0u);
      dropped += report->payloads_dropped;
    }
    CleanUp();
  });
  EXPECT_GT(dropped, 0u);
}

INSTANTIATE_TEST_SUITE_P(Piece, KillWindowTest, ::testing::Range(0, kKillPieces));

}  // namespace
}  // namespace deja::format
