#include "common/os/text_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "tests/support/temp_dir.h"

namespace deja {
namespace {

TEST(TextFile, IsReadAsItIsWritten) {
  const TempDir folder;
  const std::string path = folder / "file";
  for (const std::string& text :
       {std::string(100000, 'x'), std::string("a\0b\n", 4), std::string()}) {
    ASSERT_TRUE(WriteTextFile(path, text));
    EXPECT_EQ(*ReadTextFile(path), text);
  }
  struct stat info {};
  ASSERT_EQ(stat(path.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
}

TEST(TextFile, ErrorsNameThePath) {
  const TempDir folder;
  const auto read = ReadTextFile(folder / "none");
  ASSERT_FALSE(read);
  EXPECT_NE(read.error().message.find("/none"), std::string::npos) << read.error().message;
  EXPECT_FALSE(ReadTextFile(folder.path()));
  EXPECT_FALSE(WriteTextFile(folder / "none/file", "x"));
}

}  // namespace
}  // namespace deja
