#include "preload/files/file_facts.h"

#include <gtest/gtest.h>

#include <string>

namespace deja::preload {
namespace {

struct stat Facts() {
  struct stat info {};
  info.st_uid = 1000;
  info.st_gid = 4294967294;
  info.st_nlink = 3;
  info.st_atim = {1700000000, 123456789};
  info.st_ctim = {-2, 999999999};
  return info;
}

TEST(FileFactsTest, AreReadAsTheyWereWritten) {
  char room[kMaxFileFacts];
  const std::string_view text = WriteFileFacts(Facts(), room);
  EXPECT_EQ(text, "1000 4294967294 3 1700000000123456789 -1000000001");
  struct stat info {};
  ASSERT_TRUE(ReadFileFacts(text, info));
  EXPECT_EQ(info.st_uid, 1000u);
  EXPECT_EQ(info.st_gid, 4294967294u);
  EXPECT_EQ(info.st_nlink, 3u);
  EXPECT_EQ(info.st_atim.tv_sec, 1700000000);
  EXPECT_EQ(info.st_atim.tv_nsec, 123456789);
  EXPECT_EQ(info.st_ctim.tv_sec, -2);
  EXPECT_EQ(info.st_ctim.tv_nsec, 999999999);
}

TEST(FileFactsTest, TheLargestFit) {
  struct stat info = Facts();
  info.st_uid = info.st_gid = static_cast<uid_t>(-1);
  info.st_nlink = static_cast<nlink_t>(-1);
  info.st_atim = info.st_ctim = {-9223372036, 0};
  char room[kMaxFileFacts];
  struct stat read {};
  EXPECT_TRUE(ReadFileFacts(WriteFileFacts(info, room), read));
  EXPECT_EQ(read.st_nlink, info.st_nlink);
}

TEST(FileFactsTest, AnotherTextChangesNothing) {
  for (const char* text :
       {"", "1", "1 2 3 4", "1 2 3 4 5 6", "1 2 3 4 x", "1 2  3 4 5", "-1 2 3 4 5",
        "99999999999 2 3 4 5", "freadme\0", "1 2 3 4 99999999999999999999"}) {
    struct stat info = Facts();
    EXPECT_FALSE(ReadFileFacts(text, info)) << text;
    EXPECT_EQ(info.st_uid, 1000u) << text;
    EXPECT_EQ(info.st_nlink, 3u) << text;
  }
}

}  // namespace
}  // namespace deja::preload
