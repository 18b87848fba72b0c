// Values by number, in pieces.
#include "check/evidence/numbered.h"

#include <gtest/gtest.h>

#include <vector>

namespace deja::check {
namespace {

struct Value {
  int number = 0;
  char room[100] = {};
};

std::vector<int> Taken(Numbered<Value>& values) {
  std::vector<int> taken;
  values.TakeEach([&](const Value& value) {
    if (value.number != 0) taken.push_back(value.number);
  });
  return taken;
}

TEST(NumberedTest, ValuesStayWhereTheyAre) {
  Numbered<Value> values;
  Value& first = values[1];
  first.number = 1;
  for (int i = 2; i <= 5000; ++i) values[static_cast<uint64_t>(i)].number = i;
  EXPECT_EQ(&first, &values[1]);
  EXPECT_EQ(values[4999].number, 4999);
}

TEST(NumberedTest, AreTakenByNumberOnce) {
  Numbered<Value> values;
  for (const int i : {1'000'000, 3, 500}) values[static_cast<uint64_t>(i)].number = i;
  size_t seen = 0;
  values.ForEach([&](const Value& value) { seen += value.number != 0 ? 1 : 0; });
  EXPECT_EQ(seen, 3u);
  EXPECT_EQ(Taken(values), (std::vector<int>{3, 500, 1'000'000}));
  EXPECT_EQ(Taken(values), std::vector<int>{});
}

}  // namespace
}  // namespace deja::check
