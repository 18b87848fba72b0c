// Kills ranks that keep payloads together at random moments. What PutPayload had accepted by then,
// in any of them, must be readable from all: from folders and tails as they are, and after
// recovery.
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <random>
#include <string>

#include "format/log/rank_log.h"
#include "format/reader/rank_reader.h"
#include "format/wire/message_codec.h"
#include "tests/support/kill_test.h"

namespace deja::format {
namespace {

constexpr uint32_t kRanks = 3;

struct Progress {
  std::atomic<uint64_t> payloads[kRanks];
};

struct Plan {
  uint64_t seed = 0;
  uint64_t buffer = 1 << 20;
  uint64_t largest = 100000;
};

std::string Payload(const Plan& plan, uint64_t number) {
  const uint64_t seed = plan.seed * 31 + number;
  return SomeBytes(seed, seed * 7919 % plan.largest);
}

class KillSharingTest : public KillTest<Progress> {
 protected:
  [[noreturn]] void Child(const Plan& plan, uint32_t rank) {
    RankLogOptions options;
    options.trace_dir = dir_.path();
    options.tail_dir = tails_.path();
    options.job_id = kKillJob;
    options.payload_bytes = plan.buffer;
    options.copies = 1;
    auto log = RankLog::Create(options);
    if (!log) _exit(2);
    TraceHeader header;
    header.rank = rank;
    header.world_size = kRanks;
    if (!(*log)->BecomeRank(header)) _exit(3);
    for (uint64_t number = 0;; ++number) {
      const std::string bytes = Payload(plan, number);
      if (!(*log)->PutPayload(HashOf(bytes), AsBytes(bytes), 4).kept) _exit(4);
      progress_->payloads[rank].store(number + 1);
    }
  }

  void RunAndKill(const Plan& plan, std::mt19937_64& random) {
    pid_t children[kRanks];
    for (uint32_t rank = 0; rank < kRanks; ++rank) {
      children[rank] = Fork([&] { Child(plan, rank); });
      ASSERT_GT(children[rank], 0);
    }
    // One dies, the others go on for a moment.
    for (const pid_t child : children) {
      usleep(static_cast<useconds_t>(random() % 20000));
      Kill(child);
    }
  }

  void Check(const Plan& plan) {
    for (uint32_t rank = 0; rank < kRanks; ++rank) {
      const uint64_t accepted = progress_->payloads[rank].load();
      if (accepted == 0) continue;
      auto reader = RankReader::Open(Folder(rank));
      ASSERT_TRUE(reader) << reader.error().message;
      for (uint64_t number = 0; number < accepted; ++number) {
        const std::string bytes = Payload(plan, number);
        const Hash128 hash = HashOf(bytes);
        ASSERT_EQ((*reader)->PayloadSize(hash), bytes.size())
            << "rank " << rank << ", payload " << number << " of " << accepted;
        const Status read = (*reader)->StreamPayload(hash, [](std::span<const std::byte>) {});
        ASSERT_TRUE(read) << read.error().message;
      }
    }
  }
};

TEST_P(KillSharingTest, NothingThatAnyOfThemHadAcceptedIsLost) {
  Rounds(10, 4711, [&](std::mt19937_64& random) {
    Plan plan;
    plan.seed = random();
    plan.buffer = uint64_t{512} << (10 + random() % 5);
    plan.largest = random() % 3 == 0 ? 5000000 : 60000;
    RunAndKill(plan, random);
    if (HasFatalFailure()) return;
    Check(plan);
    if (HasFatalFailure()) return;
    Recover(kRanks);
    Check(plan);
    if (HasFatalFailure()) return;
    CleanUp();
  });
}

INSTANTIATE_TEST_SUITE_P(Piece, KillSharingTest, ::testing::Range(0, kKillPieces));

}  // namespace
}  // namespace deja::format
