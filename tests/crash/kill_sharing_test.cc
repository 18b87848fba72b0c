// Kills ranks that keep payloads together at random moments. What PutPayload had accepted by then,
// in any of them, must be readable from all: from folders and tails as they are, and after
// recovery.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <random>

#include "format/message_codec.h"
#include "format/rank_log.h"
#include "format/rank_reader.h"
#include "format/recovery.h"
#include "tests/unit/format/rank_scan.h"

namespace deja::format {
namespace {

constexpr uint32_t kRanks = 3;
constexpr char kJob[] = "0123456789abcdef0123456789abcdef";

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

class KillSharingTest : public ::testing::Test {
 protected:
  void SetUp() override {
    void* memory =
        mmap(nullptr, sizeof(Progress), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(memory, MAP_FAILED);
    progress_ = new (memory) Progress{};
    setenv("DEJA_TAIL_DIR", tails_.path().c_str(), 1);
  }
  void TearDown() override { munmap(progress_, sizeof(Progress)); }

  [[noreturn]] void Child(const Plan& plan, uint32_t rank) {
    RankLogOptions options;
    options.trace_dir = dir_.path();
    options.tail_dir = tails_.path();
    options.job_id = kJob;
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
    new (progress_) Progress{};
    pid_t children[kRanks];
    for (uint32_t rank = 0; rank < kRanks; ++rank) {
      children[rank] = fork();
      ASSERT_GE(children[rank], 0);
      if (children[rank] == 0) Child(plan, rank);
    }
    // One dies, the others go on for a moment.
    for (const pid_t child : children) {
      usleep(static_cast<useconds_t>(random() % 20000));
      kill(child, SIGKILL);
      int status = 0;
      ASSERT_EQ(waitpid(child, &status, 0), child);
      ASSERT_TRUE(WIFSIGNALED(status)) << "the writer ended by itself: " << status;
    }
  }

  [[nodiscard]] std::string Folder(uint32_t rank) const {
    return dir_ / ("rank-0000" + std::to_string(rank));
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

  TempDir dir_;
  TempDir tails_;
  Progress* progress_ = nullptr;
};

TEST_F(KillSharingTest, NothingThatAnyOfThemHadAcceptedIsLost) {
  const char* rounds_text = getenv("DEJA_TEST_KILLS");
  const int rounds = rounds_text != nullptr ? atoi(rounds_text) : 25;
  for (int round = 0; round < rounds; ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    std::mt19937_64 random(static_cast<uint64_t>(round) + 4711);
    Plan plan;
    plan.seed = random();
    plan.buffer = uint64_t{512} << (10 + random() % 5);
    plan.largest = random() % 3 == 0 ? 5000000 : 60000;
    RunAndKill(plan, random);
    if (HasFatalFailure()) return;
    Check(plan);
    if (HasFatalFailure()) return;
    for (uint32_t rank = 0; rank < kRanks; ++rank) {
      if (!std::filesystem::exists(Folder(rank))) continue;
      const auto report = RecoverRank(Folder(rank), {});
      ASSERT_TRUE(report) << report.error().message;
    }
    Check(plan);
    if (HasFatalFailure()) return;
    ASSERT_TRUE(RemoveOrphanTails(dir_.path(), kJob));
    EXPECT_TRUE(ListDir(tails_.path()).empty());
    for (const std::string& name : ListDir(dir_.path())) {
      std::filesystem::remove_all(dir_ / name);
    }
  }
}

}  // namespace
}  // namespace deja::format
