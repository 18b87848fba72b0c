#include "format/trace/bundle_parts.h"
#include "format/trace/temporary_folder.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace deja::format {
namespace {

std::string ReadAll(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

class BundlePartsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto folder = TempFolder::Make();
    ASSERT_TRUE(folder);
    folder_ = std::move(*folder);
    path_ = folder_->path() + "/x.zip";
  }
  void Write(size_t size) {
    std::string bytes(size, '\0');
    for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<char>(i * 7);
    std::ofstream(path_, std::ios::binary) << bytes;
  }
  std::unique_ptr<TempFolder> folder_;
  std::string path_;
};

TEST_F(BundlePartsTest, PartsAreTheFile) {
  for (const size_t size : {0u, 1u, 99u, 100u, 101u, 2500u}) {
    Write(size);
    const std::string before = ReadAll(path_);
    const auto parts = SplitFile(path_, 100);
    ASSERT_TRUE(parts) << parts.error().message;
    EXPECT_EQ(parts->size(), std::max<size_t>(1, (size + 99) / 100));
    EXPECT_FALSE(std::filesystem::exists(path_));
    EXPECT_EQ(parts->front(), path_ + ".001");
    EXPECT_TRUE(IsFirstPart(parts->front()));
    ASSERT_TRUE(JoinParts(parts->front(), path_));
    EXPECT_EQ(ReadAll(path_), before);
    unlink(path_.c_str());
    for (const std::string& part : *parts) unlink(part.c_str());
  }
}

TEST_F(BundlePartsTest, TooManyPartsAreRefused) {
  Write(2000);
  const auto parts = SplitFile(path_, 1);
  ASSERT_FALSE(parts);
  EXPECT_EQ(parts.error().code, ErrorCode::kLimit);
  EXPECT_EQ(ReadAll(path_).size(), 2000u);
  EXPECT_FALSE(SplitFile(path_, 0));
}

TEST_F(BundlePartsTest, AnExistingFileIsNotOverwritten) {
  Write(10);
  std::ofstream(path_ + ".001") << "mine";
  EXPECT_FALSE(SplitFile(path_, 100));
  EXPECT_EQ(ReadAll(path_ + ".001"), "mine");
  EXPECT_FALSE(IsFirstPart(path_));
  EXPECT_FALSE(IsFirstPart(".001"));
}

}  // namespace
}  // namespace deja::format
