// What a replayed program may still write to: tried in a child process, since the fence is for
// good.
#include "cli/fence/landlock.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace deja::cli {
namespace {

constexpr int kNoLandlock = 77;

bool CanWrite(const std::string& path) {
  const int fd = open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (fd >= 0) close(fd);
  return fd >= 0;
}

bool CanRead(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd >= 0) close(fd);
  return fd >= 0;
}

bool Enter(const LandlockRules& rules) {
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && EnterLandlock(MakeLandlockRuleset(rules));
}

class LandlockTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "landlock-XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
    for (const char* name : {"/dev", "/dev/nvidia-caps", "/scratch"})
      std::filesystem::create_directory(folder_ + name);
    for (const char* name : {"/dev/nvidia0", "/dev/nvidiactl", "/dev/nvidia-caps/nvidia-cap1",
                             "/dev/dxg", "/dev/sda", "/scratch/file", "/else"})
      std::ofstream(folder_ + name) << "x";
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string folder_;
};

TEST_F(LandlockTest, GpusCanBeOpenedForWriting) {
  const pid_t child = fork();
  if (child == 0) {
    LandlockRules rules;
    rules.devices = folder_ + "/dev";
    rules.writable = {folder_ + "/scratch"};
    if (!Enter(rules)) _exit(kNoLandlock);
    int wrong = 0;
    for (const char* name : {"/dev/nvidia0", "/dev/nvidiactl", "/dev/nvidia-caps/nvidia-cap1",
                             "/dev/dxg", "/scratch/file"})
      wrong += CanWrite(folder_ + name) ? 0 : 1;
    for (const char* name : {"/dev/sda", "/else"}) wrong += CanWrite(folder_ + name) ? 1 : 0;
    _exit(wrong);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == kNoLandlock) GTEST_SKIP() << "the kernel has no Landlock";
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST_F(LandlockTest, ReadingIsFencedWhereThatIsAskedFor) {
  const pid_t child = fork();
  if (child == 0) {
    LandlockRules rules;
    rules.devices = folder_ + "/dev";
    rules.writable = {folder_ + "/scratch"};
    rules.readable = {folder_ + "/else", "/usr"};
    rules.fence_reads = true;
    if (!Enter(rules)) _exit(kNoLandlock);
    int wrong = 0;
    for (const char* name : {"/else", "/scratch/file", "/dev/nvidia0"})
      wrong += CanRead(folder_ + name) ? 0 : 1;
    wrong += CanRead("/usr") ? 0 : 1;
    for (const std::string& name : {folder_ + "/dev/sda", std::string("/etc/passwd")})
      wrong += CanRead(name) ? 1 : 0;
    _exit(wrong);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == kNoLandlock) GTEST_SKIP() << "the kernel has no Landlock";
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace deja::cli
