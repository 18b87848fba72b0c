#include "common/os/proc_stat.h"

#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

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
