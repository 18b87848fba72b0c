#include "replayer/forks/fork_folder.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace deja::replayer {
namespace {

namespace fs = std::filesystem;

class ForkFolderTest : public testing::Test {
 protected:
  ForkFolderTest() {
    char pattern[] = "/tmp/deja-image-folder-XXXXXX";
    scratch_ = fs::canonical(mkdtemp(pattern));
    Write(scratch_ / "out", "so far");
    fs::create_directories(scratch_ / "a" / "b");
    Write(scratch_ / "a" / "b" / "deep", "inner");
    fs::create_symlink("b/deep", scratch_ / "a" / "link");
  }
  ~ForkFolderTest() override { fs::remove_all(scratch_); }

  static void Write(const fs::path& path, const std::string& text) {
    std::ofstream(path, std::ios::trunc) << text;
  }
  static std::string Read(const fs::path& path) {
    std::ifstream in(path);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  static std::string Keep(const fs::path& scratch, uint64_t number) {
    return KeepFolder(scratch.string(), number).text();
  }
  [[nodiscard]] fs::path Kept(uint64_t number) const {
    return scratch_.string() + kForkFolders + "/" + std::to_string(number);
  }

  fs::path scratch_;
};

TEST_F(ForkFolderTest, AWrittenFileIsKeptAsItIs) {
  fs::permissions(scratch_ / "out", fs::perms::owner_read);
  fs::last_write_time(scratch_ / "out", fs::file_time_type(std::chrono::seconds(1'000'000'000)));
  ASSERT_EQ(Keep(scratch_, 3), "");
  Write(scratch_ / "a" / "b" / "deep", "later");
  EXPECT_EQ(Read(Kept(3) / "out"), "so far");
  EXPECT_EQ(fs::status(Kept(3) / "out").permissions(), fs::perms::owner_read);
  EXPECT_EQ(fs::last_write_time(Kept(3) / "out"),
            fs::file_time_type(std::chrono::seconds(1'000'000'000)));
  EXPECT_EQ(Read(Kept(3) / "a" / "b" / "deep"), "inner");
  EXPECT_EQ(fs::read_symlink(Kept(3) / "a" / "link"), "b/deep");
}

TEST_F(ForkFolderTest, ImagesAreNotInImages) {
  ASSERT_EQ(Keep(scratch_, 1), "");
  ASSERT_EQ(Keep(scratch_, 2), "");
  EXPECT_FALSE(fs::exists(Kept(2) / "images"));
  RemoveKeptFolder(scratch_.string(), 1);
  EXPECT_FALSE(fs::exists(Kept(1)));
  EXPECT_TRUE(fs::exists(Kept(2) / "out"));
}

TEST_F(ForkFolderTest, AnImageOfTheSameNumberIsReplaced) {
  ASSERT_EQ(Keep(scratch_, 1), "");
  fs::remove(scratch_ / "out");
  Write(scratch_ / "new", "");
  ASSERT_EQ(Keep(scratch_, 1), "");
  EXPECT_FALSE(fs::exists(Kept(1) / "out"));
  EXPECT_TRUE(fs::exists(Kept(1) / "new"));
}

TEST_F(ForkFolderTest, AFileThatCannotBeCopiedIsNamedAndNoFileIsLeft) {
  ASSERT_EQ(mkfifo((scratch_ / "fifo").c_str(), 0600), 0);
  EXPECT_EQ(Keep(scratch_, 1), (scratch_ / "fifo").string() + " is no file that can be copied");
  EXPECT_FALSE(fs::exists(Kept(1)));
}

TEST_F(ForkFolderTest, MoreThanAnImageShouldHoldIsRefused) {
  fs::resize_file(scratch_ / "out", (64 << 20) + 1);
  EXPECT_EQ(Keep(scratch_, 1), "the program has written more than an image should hold");
  EXPECT_FALSE(fs::exists(Kept(1)));
}

TEST_F(ForkFolderTest, AMissingFolderIsReported) {
  EXPECT_NE(Keep(scratch_ / "none", 1), "");
}

}  // namespace
}  // namespace deja::replayer
