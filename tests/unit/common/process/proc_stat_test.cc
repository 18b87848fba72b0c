#include "common/process/proc_stat.h"

#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <string>

namespace deja {
namespace {

TEST(ProcStatTest, ReadsThisProcess) {
  const ProcStat stat = ReadProcStat(getpid());
  EXPECT_TRUE(stat.Runs());
  EXPECT_EQ(stat.parent, getppid());
  EXPECT_GT(stat.start_ticks, 0u);
}

TEST(ProcStatTest, NoProcessRunsUnderAnUnusedNumber) {
  EXPECT_FALSE(ReadProcStat(1 << 30).Runs());
  EXPECT_EQ(ReadProcStat(1 << 30).state, 0);
}

TEST(ProcStatTest, AZombieRunsNoMore) {
  const pid_t child = fork();
  if (child == 0) _exit(0);
  siginfo_t info{};
  ASSERT_EQ(waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT), 0);
  const ProcStat stat = ReadProcStat(child);
  EXPECT_EQ(stat.state, 'Z');
  EXPECT_FALSE(stat.Runs());
  EXPECT_EQ(stat.parent, getpid());
  waitpid(child, nullptr, 0);
}

TEST(ProcStatTest, AProcessIsBelowThoseThatMadeIt) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const pid_t child = fork();
  if (child == 0) {
    const pid_t grandchild = fork();
    if (grandchild == 0) {
      pause();
      _exit(0);
    }
    [[maybe_unused]] const ssize_t n = write(ends[1], &grandchild, sizeof grandchild);
    pause();
    _exit(0);
  }
  pid_t grandchild = 0;
  ASSERT_EQ(read(ends[0], &grandchild, sizeof grandchild), static_cast<ssize_t>(sizeof grandchild));
  EXPECT_TRUE(IsBelow(child, getpid()));
  EXPECT_TRUE(IsBelow(grandchild, getpid()));
  EXPECT_TRUE(IsBelow(grandchild, child));
  EXPECT_FALSE(IsBelow(child, grandchild));
  EXPECT_FALSE(IsBelow(getpid(), getpid()));
  EXPECT_FALSE(IsBelow(getppid(), getpid()));
  for (const pid_t none : {0, -1, 1, 1 << 30}) EXPECT_FALSE(IsBelow(none, getpid())) << none;
  kill(grandchild, SIGKILL);
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  close(ends[0]);
  close(ends[1]);
}

TEST(ProcStatTest, ANameMayHoldAnything) {
  char name[16] = {};
  prctl(PR_GET_NAME, name);
  prctl(PR_SET_NAME, "a) Z 1 (b");
  const ProcStat stat = ReadProcStat("/proc/thread-self/stat");
  prctl(PR_SET_NAME, name);
  EXPECT_EQ(stat.state, 'R');
  EXPECT_EQ(stat.parent, getppid());
}

TEST(ProcStatTest, AFileThatEndsEarlyLeavesZeros) {
  const std::string path = ::testing::TempDir() + "/deja-stat-" + std::to_string(getpid());
  std::ofstream(path) << "7 (x) S 12";
  const ProcStat stat = ReadProcStat(path.c_str());
  unlink(path.c_str());
  EXPECT_EQ(stat.state, 'S');
  EXPECT_EQ(stat.parent, 12);
  EXPECT_EQ(stat.start_ticks, 0u);
}

}  // namespace
}  // namespace deja
