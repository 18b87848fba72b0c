#include "format/scratch/created_names.h"

#include <gtest/gtest.h>

#include "common/os/text_file.h"
#include "tests/support/temp_dir.h"

namespace deja::format {
namespace {

TEST(CreatedNames, AreReadAsTheyAreWritten) {
  const TempDir folder;
  const std::string path = folder.path() + "/created";
  ASSERT_TRUE(WriteCreatedNames(path, {{"/a b\n1 0 /c", 7, false}, {"/d", UINT64_MAX, true}}));
  const auto names = ReadCreatedNames(path);
  ASSERT_EQ(names.size(), 2u);
  EXPECT_EQ(names[0].path, "/a b\n1 0 /c");
  EXPECT_EQ(names[0].time_ns, 7u);
  EXPECT_FALSE(names[0].was_there);
  EXPECT_EQ(names[1].path, "/d");
  EXPECT_EQ(names[1].time_ns, UINT64_MAX);
  EXPECT_TRUE(names[1].was_there);
}

TEST(CreatedNames, ADamagedEntryEndsTheList) {
  const TempDir folder;
  const std::string path = folder.path() + "/created";
  EXPECT_TRUE(ReadCreatedNames(path).empty());
  const std::string good("1 0 /a\0", 7);
  for (const char* damaged : {"", "x", "2", "2 0", "2 0 ", "18446744073709551616 0 /b", "2 0 /b"}) {
    // The last one has no end.
    const std::string end(damaged == std::string_view("2 0 /b") ? 0 : 1, '\0');
    ASSERT_TRUE(WriteTextFile(path, good + damaged + end));
    EXPECT_EQ(ReadCreatedNames(path).size(), 1u) << damaged;
  }
}

}  // namespace
}  // namespace deja::format
