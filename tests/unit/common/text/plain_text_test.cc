#include "common/text/plain_text.h"

#include <gtest/gtest.h>

#include <string>

namespace deja {
namespace {

TEST(PlainTextTest, OrdinaryTextStaysAsItIs) {
  for (const char* text :
       {"", "rank 3: exit 0", "C:\\new", "\xc3\xa4\xc3\xb6 \xe2\x80\xa6 \xf0\x9f\x98\x80"}) {
    EXPECT_EQ(PlainText(text), text);
    EXPECT_TRUE(IsPlainText(text)) << text;
    EXPECT_EQ(PlainJson(text), text);
  }
}

TEST(PlainTextTest, ControlCharactersAreWrittenOut) {
  EXPECT_EQ(PlainText("a\nb\tc\rd"), "a\\nb\\tc\\x0dd");
  EXPECT_EQ(PlainText("\x1b[2J\x7f"), "\\x1b[2J\\x7f");
  EXPECT_EQ(PlainText("\xc2\x9b"
                      "31m"),
            "\\u{9b}31m");
  EXPECT_EQ(PlainText("\xe2\x80\xae"
                      "gnp.exe\xe2\x80\xa8"),
            "\\u{202e}gnp.exe\\u{2028}");
  EXPECT_EQ(PlainText(std::string("a\0b", 3)), "a\\x00b");
}

TEST(PlainTextTest, BytesThatAreNoUtf8AreWrittenOut) {
  EXPECT_EQ(PlainText("\xff\xc3"), "\\xff\\xc3");
  EXPECT_EQ(PlainText("\xc0\xaf"), "\\xc0\\xaf");           // longer than it has to be
  EXPECT_EQ(PlainText("\xed\xa0\x80"), "\\xed\\xa0\\x80");  // a surrogate
  EXPECT_EQ(PlainText("\x9b"), "\\x9b");
}

TEST(PlainTextTest, JsonStaysTheSameDocument) {
  EXPECT_EQ(PlainJson("{\n  \"a\": \"\xc2\x9b\x7f\"\n}"), "{\n  \"a\": \"\\u009b\\u007f\"\n}");
  EXPECT_EQ(PlainJson("\"\xf3\xa0\x80\x81\""), "\"\\udb40\\udc01\"");  // U+E0001
}

}  // namespace
}  // namespace deja
