// What a replayed program may still write to: tried in a child process, since the fence is for
// good.
#include "replayer/landlock.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace deja::replayer {
namespace {

constexpr int kNoLandlock = 77;

bool CanWrite(const std::string& path) {
  const int fd = open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (fd >= 0) close(fd);
  return fd >= 0;
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
    const std::string devices = folder_ + "/dev";
    FenceOptions options;
    options.devices = devices.c_str();
    if (!Restrict((folder_ + "/scratch").c_str(), options).files) _exit(kNoLandlock);
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

}  // namespace
}  // namespace deja::replayer
