#include "preload/process/own_variables.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "common/own_variable_names.h"

namespace deja::preload {
namespace {

std::string Without(const std::string& list) {
  std::vector<char> out(list.size() + 1);
  const size_t size = WithoutOwnLibrary(list, out);
  EXPECT_EQ(std::strlen(out.data()), size);
  return {out.data(), size};
}

// What is hidden stays hidden: each case is a process of its own.
void InProcess(void (*check)()) {
  const pid_t child = fork();
  if (child == 0) {
    check();
    _exit(testing::Test::HasFailure() ? 1 : 0);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST(OwnVariables, AreThoseOfTheTable) {
  EXPECT_TRUE(IsOwnVariable("DEJA_OUT=/x"));
  EXPECT_TRUE(IsOwnVariable("DEJA_PAD_17="));
  EXPECT_FALSE(IsOwnVariable("DEJA_OUTSIDE=1"));
  EXPECT_FALSE(IsOwnVariable("DEJA_OF_THE_PROGRAM=1"));
  EXPECT_FALSE(IsOwnVariable("PATH=/bin"));
}

TEST(OwnVariables, LeaveTheOthersInTheirOrder) {
  InProcess([] {
    char one[] = "ONE=1";
    char out[] = "DEJA_OUT=/trace";
    char two[] = "TWO=2";
    char pad[] = "DEJA_PAD_00=..";
    char child[] = "DEJA_CHILD=x";
    char* entries[] = {one, out, two, pad, child, nullptr};
    environ = entries;
    KeepOwnVariables("DEJA_CHILD=");
    EXPECT_EQ(OwnVariables().size(), 2u);
    HideOwnVariables();
    ASSERT_TRUE(OwnVariablesAreHidden());
    ASSERT_STREQ(environ[0], "ONE=1");
    ASSERT_STREQ(environ[1], "TWO=2");
    ASSERT_EQ(environ[2], nullptr);
    EXPECT_EQ(&environ[2], &entries[5]) << "the array ends where it ended";
    EXPECT_EQ(std::getenv("DEJA_OUT"), nullptr);
    EXPECT_STREQ(OwnVariable(env::kOut), "/trace");
    EXPECT_EQ(OwnVariable(env::kLevel), nullptr);
  });
}

TEST(OwnVariables, HaveTheTypesOfTheTable) {
  InProcess([] {
    char number[] = "DEJA_BUFFER=4096";
    char yes[] = "DEJA_HOLD=1";
    char no[] = "DEJA_BACKGROUND_IDLE_IO=0";
    char empty[] = "DEJA_GDB=";
    char choice[] = "DEJA_LEVEL=order";
    char* entries[] = {number, yes, no, empty, choice, nullptr};
    environ = entries;
    EXPECT_EQ(OwnNumber(env::kBuffer), 4096u);
    EXPECT_EQ(OwnNumber(env::kRedundancy), 0u);
    EXPECT_TRUE(OwnFlag(env::kHold));
    EXPECT_FALSE(OwnFlag(env::kBackgroundIdleIo));
    EXPECT_FALSE(OwnFlag(env::kGdb));
    EXPECT_FALSE(OwnFlag(env::kAllowWrites));
    EXPECT_TRUE(OwnVariableIs(env::kLevel, "order"));
    EXPECT_FALSE(OwnVariableIs(env::kLevel, "full"));
    EXPECT_FALSE(OwnVariableIs(env::kClock, "live"));
  });
}

TEST(OwnVariables, TakeTheLibraryOutOfTheList) {
  InProcess([] {
    char out[] = "DEJA_OUT=/trace";
    char* entries[] = {out, nullptr};
    environ = entries;
    KeepOwnVariables("DEJA_CHILD=");
    const std::string own(OwnLibrary());
    ASSERT_FALSE(own.empty());
    EXPECT_EQ(Without(own), "");
    EXPECT_EQ(Without(own + ":/a.so /b.so"), "/a.so /b.so");
    EXPECT_EQ(Without("/a.so:" + own + " /b.so"), "/a.so /b.so");
    EXPECT_EQ(Without("/a.so " + own), "/a.so");
    EXPECT_EQ(Without("/a" + own), "/a" + own);

    std::string list = "LD_PRELOAD=" + own + ":/a.so";
    std::string last = "LAST=1";
    char* listed[] = {out, list.data(), last.data(), nullptr};
    environ = listed;
    HideOwnVariables();
    EXPECT_STREQ(environ[0], "LD_PRELOAD=/a.so");
    EXPECT_STREQ(environ[1], "LAST=1");
  });
}

}  // namespace
}  // namespace deja::preload
