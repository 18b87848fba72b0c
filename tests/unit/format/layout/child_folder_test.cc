#include "format/layout/child_folder.h"

#include <gtest/gtest.h>

namespace deja::format {
namespace {

TEST(ChildFolderTest, TheProcessThatForkedAnother) {
  EXPECT_EQ(ForkedFrom("0/2"), "");
  EXPECT_EQ(ForkedFrom("0/1+1/0.3/12"), "0/1+1");
  EXPECT_EQ(ForkedFrom("+1/0/2"), "+1");
  EXPECT_EQ(ForkedFrom("0/1/0/2"), "0/1");
  EXPECT_EQ(ForkedFrom(""), std::nullopt);
  EXPECT_EQ(ForkedFrom("+2"), std::nullopt);
  EXPECT_EQ(ForkedFrom("0/2+1"), std::nullopt);
}

TEST(ChildFolderTest, AncestorsOfAForkedRankUpToTheNextImage) {
  Origin rank;
  rank.root = "tree";
  rank.path = "0/1+1/0/2/0/1";
  const auto is_ancestor = [&](const std::string& root, const std::string& path) {
    Origin process;
    process.root = root;
    process.path = path;
    return IsForkAncestor(process, {Origin{}, rank});
  };
  EXPECT_TRUE(is_ancestor("tree", "0/1+1/0/2"));
  EXPECT_TRUE(is_ancestor("tree", "0/1+1"));
  EXPECT_FALSE(is_ancestor("tree", "0/1"));
  EXPECT_FALSE(is_ancestor("tree", ""));
  EXPECT_FALSE(is_ancestor("tree", "0/1+1/0/1"));
  EXPECT_FALSE(is_ancestor("another", "0/1+1"));
}

}  // namespace
}  // namespace deja::format
