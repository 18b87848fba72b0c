// Kills the children of a rank with a window, and the process that drops what they have left, at
// random moments. A child may be writing, or its folder may be completed and thinned over and over
// as the rank's window moves on. What is in the window must be readable, and what is missing must
// be reported as dropped. That holds in every state that is found, and after another pass.
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <optional>
#include <random>
#include <string>

#include "format/layout/child_folder.h"
#include "format/log/rank_log.h"
#include "format/reader/rank_reader.h"
#include "format/repair/folder_thinning.h"
#include "format/window/window_board.h"
#include "format/wire/message_codec.h"
#include "tests/support/kill_test.h"

namespace deja::format {
namespace {

struct Plan {
  uint64_t seed = 0;
  uint64_t keep_steps = 3;
  uint64_t size = 4000;
  uint64_t step_us = 200;
  uint64_t shared_bytes = 0;
  bool flush = false;  // after each payload; else most are in memory when the child is killed
};

struct Progress {
  std::atomic<uint64_t> steps;     // of the rank
  std::atomic<uint64_t> payloads;  // of the child: accepted, and their events appended
  std::atomic<uint64_t> passes;    // over the child's folder
};

class KillChildrenTest : public KillTest<Progress> {
 protected:
  // `path`: its place in the tree of processes.
  std::unique_ptr<RankLog> Make(const Plan& plan, const char* path) {
    RankLogOptions options;
    options.trace_dir = dir_.path();
    options.tail_dir = tails_.path();
    options.job_id = kKillJob;
    options.payload_bytes = 1 << 20;
    options.origin = {kKillJob, path};
    options.window.keep_steps = plan.keep_steps;
    options.window.shared_bytes = plan.shared_bytes;
    auto log = RankLog::Create(options);
    if (!log) _exit(2);
    return std::move(*log);
  }

  [[noreturn]] void Rank(const Plan& plan) {
    auto log = Make(plan, "");
    TraceHeader header;
    header.world_size = 1;
    header.origin.root = kKillJob;
    if (!log->BecomeRank(header)) _exit(3);
    EventSink* sink = log->ClaimSink(0);
    uint64_t seq = 0;
    for (uint64_t step = 1;; ++step) {
      Append(sink, seq, Step{step});
      log->BeginStep(step);
      Put(*log, sink, seq, SomeBytes(plan.seed + step, plan.size));
      progress_->steps.store(step);
      usleep(static_cast<useconds_t>(plan.step_us));
    }
  }

  // Every fourth payload is the same one.
  [[noreturn]] void Child(const Plan& plan) {
    auto log = Make(plan, "0/1");
    if (!log->BecomeChild(TraceHeader{})) _exit(3);
    EventSink* sink = log->ClaimSink(0);
    uint64_t seq = 0;
    for (uint64_t number = 0;; ++number) {
      const uint64_t content = number % 4 == 0 ? 0 : number;
      Put(*log, sink, seq, SomeBytes(plan.seed * 31 + content, plan.size));
      progress_->payloads.store(number + 1);
      if (plan.flush) log->Flush();
    }
  }

  // What `deja record` does with the folder of a child that is gone (cli/record/window_sweep.h).
  void Pass(const std::string& folder) {
    if (!RecoverRank(folder, {})) return;
    const WindowBoard* board = WindowBoard::OfJob(tails_.path(), kKillJob, false);
    if (board == nullptr) return;
    uint64_t freed = 0;
    (void)DropSegments(
        folder,
        [&](const Segment& segment) {
          return segment.last_step != 0 && !board->MayBeWanted(segment.number);
        },
        "", freed);
  }

  static void WaitFor(const std::atomic<uint64_t>& count, uint64_t wanted) {
    for (int i = 0; i < 100000 && count.load() < wanted; ++i) usleep(100);
  }

  // How many of the missing ones are reported as dropped.
  uint64_t Check(const std::string& folder) {
    uint64_t dropped = 0;
    const uint64_t accepted = progress_->payloads.load();
    auto reader = RankReader::Open(folder);
    if (!reader) {
      ADD_FAILURE() << reader.error().message;
      return 0;
    }
    // The window only moves on: what it holds now it held when the folder was read.
    const WindowBoard* board = WindowBoard::OfJob(tails_.path(), kKillJob, false);
    uint64_t snapshots = 0;
    const auto cursor = (*reader)->Events();
    while (const Event* event = cursor->Next()) {
      const auto* snapshot = event->As<Snapshot>();
      if (snapshot == nullptr) continue;
      ++snapshots;
      const uint32_t segment = snapshot->tensor.segment;
      const Hash128 hash = snapshot->tensor.hash;
      if ((*reader)->PayloadSize(hash)) {
        const Status read = (*reader)->StreamPayload(hash, [](std::span<const std::byte>) {});
        EXPECT_TRUE(read) << "payload " << snapshots << " of " << accepted << ": "
                          << read.error().message;
        continue;
      }
      EXPECT_TRUE((*reader)->Dropped(segment))
          << "payload " << snapshots << " of " << accepted << ", segment " << segment
          << ", is neither there nor dropped";
      EXPECT_FALSE(board != nullptr && board->MayBeWanted(segment))
          << "payload " << snapshots << " of " << accepted << ", segment " << segment
          << ", is in the window and was dropped";
      ++dropped;
    }
    EXPECT_GE(snapshots, accepted);
    return dropped;
  }

  std::optional<std::string> ChildFolder() {
    for (const std::string& folder : ListChildFolders(dir_.path())) return folder;
    return std::nullopt;
  }
};

TEST_P(KillChildrenTest, PayloadsInTheWindowAreThereAndTheRestIsReportedAsDropped) {
  uint64_t dropped = 0;
  Rounds(16, 4711, [&](std::mt19937_64& random) {
    Plan plan;
    plan.seed = random();
    plan.keep_steps = 1 + random() % 6;
    plan.size = 600 + random() % 20000;
    plan.step_us = 100 + random() % 2000;
    plan.shared_bytes = random() % 2 == 0 ? 0 : random() % 100000;
    plan.flush = random() % 2 == 0;
    const pid_t rank = Fork([&] { Rank(plan); });
    WaitFor(progress_->steps, 1);
    const pid_t child = Fork([&] { Child(plan); });
    WaitFor(progress_->payloads, random() % 40);
    usleep(static_cast<useconds_t>(random() % 20000));
    Kill(child);
    if (const auto folder = ChildFolder()) {
      Check(*folder);
      for (int killed = 0; killed < 3 && !HasFailure(); ++killed) {
        const uint64_t passes = progress_->passes.load();
        const pid_t sweeper = Fork([&] {
          for (;;) {
            Pass(*folder);
            progress_->passes.fetch_add(1);
          }
        });
        WaitFor(progress_->passes, passes + random() % 5);
        usleep(static_cast<useconds_t>(random() % 5000));
        Kill(sweeper);
        Check(*folder);
      }
      WaitFor(progress_->steps, progress_->steps.load() + plan.keep_steps * 3);
      Pass(*folder);
      dropped += Check(*folder);
    }
    Kill(rank);
    Recover(1);
    if (HasFailure()) return;
    CleanUp();
  });
  EXPECT_GT(dropped, 0u);
}

INSTANTIATE_TEST_SUITE_P(Piece, KillChildrenTest, ::testing::Range(0, kKillPieces));

}  // namespace
}  // namespace deja::format
