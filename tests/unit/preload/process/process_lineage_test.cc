#include "preload/process/process_lineage.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>

namespace deja::preload {
namespace {

TEST(ProcessLineageTest, AChildDescendsFromItsMaker) {
  const int self = getpid();
  const int child = fork();
  if (child == 0) {
    pause();
    _exit(0);
  }
  char space[64];
  const std::string expected = std::to_string(child) + " " + std::to_string(self);
  EXPECT_EQ(WriteLineage(child, self, space), expected);
  EXPECT_EQ(WriteLineage(self, self, space), std::to_string(self));
  EXPECT_TRUE(DescendsFrom(child, self));
  EXPECT_FALSE(DescendsFrom(self, child));
  EXPECT_EQ(WriteLineage(self, child, space), "");
  char small[4];
  EXPECT_EQ(WriteLineage(child, self, small), "");
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  EXPECT_FALSE(DescendsFrom(child, self));
}

TEST(ProcessLineageTest, ATextHasItsNumbersOnly) {
  EXPECT_TRUE(LineageHas("1300 1200 1100", 1300));
  EXPECT_TRUE(LineageHas("1300 1200 1100", 1100));
  EXPECT_FALSE(LineageHas("1300 1200 1100", 120));
  EXPECT_FALSE(LineageHas("", 1));
  EXPECT_FALSE(LineageHas("what 1200", 1200));
}

}  // namespace
}  // namespace deja::preload
