#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "replayer/files/served_file.h"
#include "replayer/files/served_folders.h"

namespace deja::replayer {
namespace {

using namespace std::string_view_literals;  // NOLINT: for zeros in texts

TEST(ServedFoldersTest, EntriesComeInTheRecordedOrderWithTheirTypes) {
  const std::vector<dirent> entries = EntriesOf("fz\0d.\0da\0ll\0oq\0"sv);
  ASSERT_EQ(entries.size(), 5u);
  EXPECT_STREQ(entries[0].d_name, "z");
  EXPECT_EQ(entries[0].d_type, DT_REG);
  EXPECT_STREQ(entries[1].d_name, ".");
  EXPECT_EQ(entries[2].d_type, DT_DIR);
  EXPECT_EQ(entries[3].d_type, DT_LNK);
  EXPECT_EQ(entries[4].d_type, DT_UNKNOWN);
  EXPECT_NE(entries[0].d_ino, 0u);
}

TEST(ServedFoldersTest, NamesThatNoFolderHasAreLeftOut) {
  const std::string longest = "f" + std::string(255, 'x') + '\0' + "f" + std::string(256, 'x');
  EXPECT_EQ(EntriesOf(longest).size(), 1u);
  EXPECT_EQ(EntriesOf("f\0f../up\0fa/b\0fok"sv).size(), 1u);
  EXPECT_TRUE(EntriesOf("").empty());
}

TEST(ServedFoldersTest, AStreamIsListedRewoundAndClosed) {
  ServedFolders folders;
  folders.SetFind(
      [](DIR*, const char* path, ServedFolders::Folder& folder, void*) {
        if (path == nullptr) return false;
        folder = {path, std::string("fa\0fb\0"sv)};
        return true;
      },
      [](const std::string& path, void*) -> uint64_t { return path == "/data/b" ? 42 : 0; },
      nullptr);
  auto* stream = reinterpret_cast<DIR*>(&folders);
  folders.OnOpened(stream, nullptr);
  EXPECT_FALSE(folders.Serves(stream));
  folders.OnOpened(stream, "/data");
  ASSERT_TRUE(folders.Serves(stream));
  EXPECT_STREQ(folders.Next(stream)->d_name, "a");
  const long position = folders.Position(stream);
  const dirent* second = folders.Next(stream);
  EXPECT_STREQ(second->d_name, "b");
  EXPECT_EQ(second->d_ino, 42u);
  EXPECT_EQ(folders.Next(stream), nullptr);
  folders.SetPosition(stream, position);
  EXPECT_STREQ(folders.Next(stream)->d_name, "b");
  folders.OnClosed(stream);
  EXPECT_FALSE(folders.Serves(stream));
}

TEST(ServedFileTest, FindsTheFirstByteThatTheRecordingDoesNotHave) {
  RecordedFile file;
  file.ranges = {{0, 100, {}, format::FileReadHow::kRead, true},
                 {50, 100, {}, format::FileReadHow::kMapped, true},
                 {200, 100, {}, format::FileReadHow::kRead, false},
                 {300, 100, {}, format::FileReadHow::kRead, true}};
  EXPECT_EQ(FirstUnread(file, 0, 150), 150u);
  EXPECT_EQ(FirstUnread(file, 20, 160), 150u);
  EXPECT_EQ(FirstUnread(file, 160, 180), 160u);
  EXPECT_EQ(FirstUnread(file, 210, 220), 210u);
  EXPECT_EQ(FirstUnread(file, 300, 400), 400u);
  EXPECT_EQ(FirstUnread(file, 390, 410), 400u);
}

}  // namespace
}  // namespace deja::replayer
