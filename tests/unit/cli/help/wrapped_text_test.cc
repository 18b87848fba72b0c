#include "cli/help/wrapped_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace deja::cli {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(WrappedTextTest, ACharacterOfUtf8IsOneColumn) {
  EXPECT_EQ(Columns("abc"), 3u);
  EXPECT_EQ(Columns("a…c"), 3u);
}

TEST(WrappedTextTest, LinesAreNotLongerThanTheWidth) {
  EXPECT_THAT(WrappedLines("one two three", 7), ElementsAre("one two", "three"));
  EXPECT_THAT(WrappedLines("one two three", 6), ElementsAre("one", "two", "three"));
  EXPECT_THAT(WrappedLines("  one \n two ", 80), ElementsAre("one two"));
  EXPECT_THAT(WrappedLines("a longerthanthat b", 4), ElementsAre("a", "longerthanthat", "b"));
  EXPECT_THAT(WrappedLines("", 4), IsEmpty());
}

TEST(WrappedTextTest, AListHasItsTextsInOneColumn) {
  EXPECT_EQ(ListEntry("-o", "text", 8), "  -o    text\n");
  EXPECT_EQ(ListEntry("--long", "text", 8), "  --long\n        text\n");
  EXPECT_EQ(ListEntry("name", "", 8), "  name\n");
  const std::string entry = ListEntry("-o", std::string(90, 'x') + " end", 8);
  EXPECT_EQ(entry, "  -o    " + std::string(90, 'x') + "\n        end\n");
}

}  // namespace
}  // namespace deja::cli
