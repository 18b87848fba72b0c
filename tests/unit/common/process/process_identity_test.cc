#include "common/process/process_identity.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

namespace deja {
namespace {

TEST(ProcessIdentityTest, AChildRunsUntilItEnds) {
  const pid_t child = fork();
  if (child == 0) {
    pause();
    _exit(0);
  }
  ASSERT_GT(child, 0);
  const auto pid = static_cast<uint32_t>(child);
  EXPECT_TRUE(Runs(pid));
  EXPECT_GE(StartTicks(pid), StartTicks(static_cast<uint32_t>(getpid())));
  kill(child, SIGKILL);
  siginfo_t info{};
  ASSERT_EQ(waitid(P_PID, pid, &info, WEXITED | WNOWAIT), 0);
  EXPECT_FALSE(Runs(pid)) << "a zombie writes nothing any more";
  ASSERT_EQ(waitpid(child, nullptr, 0), child);
  EXPECT_FALSE(Runs(pid));
  EXPECT_EQ(StartTicks(pid), 0u);
}

// A process may end between the opening of its /proc/PID/stat and the read, which then fails.
TEST(ProcessIdentityTest, AProcessMayEndWhileItIsLookedAt) {
  for (int round = 0; round < 300; ++round) {
    const pid_t child = fork();
    if (child == 0) _exit(0);
    ASSERT_GT(child, 0);
    signal(SIGCHLD, SIG_IGN);  // reaped at once
    while (Runs(static_cast<uint32_t>(child))) {
    }
    signal(SIGCHLD, SIG_DFL);
    while (waitpid(child, nullptr, WNOHANG) == 0) {
    }
  }
}

}  // namespace
}  // namespace deja
