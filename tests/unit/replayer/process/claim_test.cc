#include "replayer/process/claim.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "tests/support/temp_dir.h"

namespace deja::replayer {
namespace {

TEST(ClaimTest, TheFirstProcessIsTheRank) {
  const TempDir scratch;
  EXPECT_EQ(ClaimHolder(scratch.path()), 0);
  EXPECT_TRUE(ClaimRank(scratch.path(), false));
  EXPECT_EQ(ClaimHolder(scratch.path()), getpid());
  EXPECT_FALSE(ClaimRank(scratch.path(), false));
}

void LeaveClaim(const std::string& scratch) {
  const pid_t first = fork();
  if (first == 0) _exit(ClaimRank(scratch, false) ? 0 : 1);
  int status = 0;
  ASSERT_EQ(waitpid(first, &status, 0), first);
  ASSERT_EQ(status, 0);
}

TEST(ClaimTest, InADebuggerAProcessThatIsGoneLosesItsClaim) {
  const TempDir scratch;
  LeaveClaim(scratch.path());
  EXPECT_TRUE(ClaimRank(scratch.path(), true));
}

TEST(ClaimTest, AChildThatOutlivesTheRankDoesNotFollowIt) {
  const TempDir scratch;
  LeaveClaim(scratch.path());
  EXPECT_FALSE(ClaimRank(scratch.path(), false));
}

TEST(ClaimTest, NoProcessFollowsARankThatGaveUp) {
  const TempDir scratch;
  EXPECT_TRUE(ClaimRank(scratch.path(), false));
  GiveUpRank(scratch.path());
  EXPECT_FALSE(ClaimRank(scratch.path(), false));
}

TEST(ClaimTest, AClaimThatIsBeingWrittenIsOne) {
  const TempDir scratch;
  ASSERT_TRUE(ClaimRank(scratch.path(), false));
  const pid_t holder = fork();
  while (holder == 0) HoldClaim(scratch.path());
  int claims = 0;
  for (int i = 0; i < 2000; ++i) claims += ClaimRank(scratch.path(), false) ? 1 : 0;
  kill(holder, SIGKILL);
  waitpid(holder, nullptr, 0);
  EXPECT_EQ(claims, 0);
}

}  // namespace
}  // namespace deja::replayer
