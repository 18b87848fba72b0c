#include "format/scratch/fold_files.h"

#include <gtest/gtest.h>

#include "common/os/text_file.h"
#include "format/scratch/process_list.h"
#include "format/scratch/scratch_names.h"
#include "tests/support/temp_dir.h"

namespace deja::format {
namespace {

TEST(FoldFiles, AreReadAsTheyAreWritten) {
  const TempDir folder;
  const std::vector<FoldComm> comms = {{0, 1, 0}, {UINT64_MAX, UINT32_MAX, 0x12}};
  const std::vector<FoldResult> results = {{0xabc, 8, UINT64_MAX}};
  ASSERT_TRUE(WriteFoldComms(folder.path(), comms));
  ASSERT_TRUE(WriteFoldResults(folder.path(), results));
  EXPECT_EQ(*ReadFoldComms(folder.path()), comms);
  EXPECT_EQ(*ReadFoldResults(folder.path()), results);
  ASSERT_TRUE(WriteFoldResults(folder.path(), {}));
  EXPECT_TRUE(ReadFoldResults(folder.path())->empty());
}

TEST(FoldFiles, ADamagedLineIsNamed) {
  const TempDir folder;
  const std::string good = "0000000000000abc 8 0000000000000abc\n";
  for (const char* line : {"\n", "x 8 1\n", "0000000000000abc 8\n", "0 8 1 1\n", "0 -8 1\n",
                           "0 4294967296 1\n", "0 8 1", "0  8 1\n"}) {
    ASSERT_TRUE(WriteTextFile(folder.path() + kFoldCommsFile, good + line));
    const auto read = ReadFoldComms(folder.path());
    ASSERT_FALSE(read) << line;
    EXPECT_NE(read.error().message.find("/comms: line 2 is damaged"), std::string::npos)
        << read.error().message;
  }
}

TEST(FoldFiles, AFileThatIsNotThereIsAnError) {
  const TempDir folder;
  EXPECT_FALSE(ReadFoldComms(folder.path()));
  EXPECT_FALSE(ReadFoldResults(folder.path()));
}

TEST(ProcessList, IsReadAsItIsWritten) {
  const TempDir folder;
  const std::string path = folder / "list";
  ASSERT_TRUE(WriteProcessList(path, {{"0/1", "/t/rank-00000/child 1"}, {"0/2", ""}}));
  const auto read = ReadProcessList(path);
  ASSERT_EQ(read.size(), 2u);
  EXPECT_EQ(read[0].name, "0/1");
  EXPECT_EQ(read[0].folder, "/t/rank-00000/child 1");
  EXPECT_EQ(read[1].folder, "");
  EXPECT_TRUE(ReadProcessList(folder / "none").empty());
}

TEST(ProcessList, APathThatWouldBreakALineIsRefused) {
  const TempDir folder;
  EXPECT_FALSE(WriteProcessList(folder / "list", {{"0/1", "/t\n0/2\t/x"}}));
  EXPECT_FALSE(WriteProcessList(folder / "list", {{"0/1", "/a\tb"}}));
}

}  // namespace
}  // namespace deja::format
