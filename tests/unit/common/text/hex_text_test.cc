#include "common/text/hex_text.h"

#include <gtest/gtest.h>

namespace deja {
namespace {

TEST(HexText, IsReadAsItIsWritten) {
  const std::string bytes("\x00\x7f\x80\xff", 4);
  EXPECT_EQ(HexText(bytes), "007f80ff");
  EXPECT_EQ(BytesOfHex("007f80ff"), bytes);
  EXPECT_EQ(BytesOfHex("007F80FF"), bytes);
  EXPECT_EQ(BytesOfHex(""), "");
}

TEST(HexText, OtherTextIsRefused) {
  for (const char* text : {"0", "0g", "g0", " 1", "-1", "0x12"})
    EXPECT_EQ(BytesOfHex(text), std::nullopt) << text;
}

}  // namespace
}  // namespace deja
