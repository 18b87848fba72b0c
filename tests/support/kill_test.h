// KillTest: a fixture for tests that kill recording processes at random moments, and see what is
// there afterwards.
//
// `Progress` holds atomics in memory that the test and its children share. A child writes there
// what it has done, after the call that did it has returned. The test is one of kKillPieces pieces,
// each with random numbers of its own; DEJA_TEST_KILLS says how many rounds a piece has.
#ifndef DEJA_TESTS_SUPPORT_KILL_TEST_H_
#define DEJA_TESTS_SUPPORT_KILL_TEST_H_

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <new>
#include <random>
#include <string>

#include "format/log/rank_log.h"
#include "format/repair/recovery.h"
#include "format/wire/message_codec.h"
#include "tests/unit/format/log/rank_scan.h"

namespace deja::format {

inline constexpr int kKillPieces = 8;
inline constexpr char kKillJob[] = "0123456789abcdef0123456789abcdef";

template <typename Progress>
class KillTest : public ::testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    void* memory =
        mmap(nullptr, sizeof(Progress), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(memory, MAP_FAILED);
    progress_ = new (memory) Progress{};
    setenv("DEJA_TAIL_DIR", tails_.path().c_str(), 1);
  }
  void TearDown() override { munmap(progress_, sizeof(Progress)); }

  // Calls round(random) that often, until something fails.
  template <typename Round>
  void Rounds(int many, uint64_t seed, const Round& round) {
    const char* text = getenv("DEJA_TEST_KILLS");
    if (text != nullptr) many = atoi(text);
    for (int i = 0; i < many && !HasFatalFailure(); ++i) {
      SCOPED_TRACE("round " + std::to_string(i));
      std::mt19937_64 random(seed + static_cast<uint64_t>(GetParam() * 1000 + i));
      new (progress_) Progress{};
      round(random);
    }
  }

  // Runs `body`, which does not return, in a child. It ends with the test: a writer that is never
  // killed fills the disk.
  template <typename Body>
  static pid_t Fork(const Body& body) {
    const pid_t pid = fork();
    EXPECT_GE(pid, 0);
    if (pid == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      body();
    }
    return pid;
  }

  static void Kill(pid_t child) {
    kill(child, SIGKILL);
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status)) << "the writer ended by itself: " << status;
  }

  // ---- In the process that is to be killed, which ends by itself where one of these fails.

  // An event of thread 0.
  template <typename Body>
  static void Append(EventSink* sink, uint64_t& seq, const Body& body) {
    const EventHead head{0, seq, seq};
    ++seq;
    if (!sink->Append(AsBytes(EncodeEventToString(head, body)))) _exit(5);
  }

  // Keeps the bytes, and appends an event that refers to them. False if they are not kept.
  static bool TryPut(RankLog& log, EventSink* sink, uint64_t& seq, const std::string& bytes) {
    const Placed placed = log.PutPayload(HashOf(bytes), AsBytes(bytes), 4);
    if (!placed.kept) return false;
    Snapshot snapshot;
    snapshot.tensor.hash = HashOf(bytes);
    snapshot.tensor.payload = static_cast<uint32_t>(PayloadState::kKept);
    snapshot.tensor.segment = placed.segment;
    Append(sink, seq, snapshot);
    return true;
  }
  // The same where they must be.
  static void Put(RankLog& log, EventSink* sink, uint64_t& seq, const std::string& bytes) {
    if (!TryPut(log, sink, seq, bytes)) _exit(4);
  }

  // ---- In the test

  [[nodiscard]] std::string Folder(uint32_t rank) const {
    return dir_ / ("rank-0000" + std::to_string(rank));
  }

  void Recover(uint32_t ranks) {
    for (uint32_t rank = 0; rank < ranks; ++rank) {
      if (!std::filesystem::exists(Folder(rank))) continue;
      const auto report = RecoverRank(Folder(rank), {});
      ASSERT_TRUE(report) << report.error().message;
    }
  }
  // Nothing of a round stays, and no tail had been forgotten.
  void CleanUp() {
    ASSERT_TRUE(RemoveOrphanTails(dir_.path(), kKillJob));
    EXPECT_TRUE(ListDir(tails_.path()).empty());
    for (const std::string& name : ListDir(dir_.path())) std::filesystem::remove_all(dir_ / name);
  }

  TempDir dir_;
  TempDir tails_;
  Progress* progress_ = nullptr;
};

}  // namespace deja::format

#endif  // DEJA_TESTS_SUPPORT_KILL_TEST_H_
