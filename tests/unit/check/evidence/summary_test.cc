// Places as text, and back.
#include "check/evidence/summary.h"

#include <gtest/gtest.h>

namespace deja::check {
namespace {

TEST(SummaryTest, APlaceIsReadFromItsText) {
  const Place place = {"train.py", 57, "main"};
  EXPECT_EQ(ParsePlace(Describe(place)), place);
  EXPECT_EQ(ParsePlace("a:b.py:3 in f in g").line, 3);
}

TEST(SummaryTest, AnotherTextIsNoPlace) {
  for (const char* text : {"", "train.py", "train.py:57", "main in train.py"})
    EXPECT_EQ(ParsePlace(text), Place{}) << text;
}

}  // namespace
}  // namespace deja::check
