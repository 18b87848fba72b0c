#include "common/inline_vec.h"

#include <gtest/gtest.h>

namespace deja {
namespace {

TEST(InlineVec, RefusesWhatDoesNotFit) {
  InlineVec<int, 2> v;
  EXPECT_TRUE(v.push_back(1));
  EXPECT_TRUE(v.push_back(2));
  EXPECT_FALSE(v.push_back(3));
  EXPECT_EQ(v.size(), 2u);
  EXPECT_EQ(v.back(), 2);
}

TEST(InlineVec, IteratesInOrder) {
  InlineVec<int, 4> v{1, 2, 3};
  int sum = 0;
  for (int x : v) sum = sum * 10 + x;
  EXPECT_EQ(sum, 123);
}

}  // namespace
}  // namespace deja
