#include "preload/process/child_padding.h"

#include <gtest/gtest.h>

#include <cstring>
#include <set>
#include <string>
#include <vector>

namespace deja::preload {
namespace {

std::vector<std::string> Environment(const std::string& child, size_t pads,
                                     const std::string& dots) {
  std::vector<std::string> entries = {"HOME=/root", "LD_PRELOAD=/lib/libdeja_record.so",
                                      "DEJA_CHILD=" + child};
  for (size_t i = 0; i < pads; ++i)
    entries.push_back("DEJA_PAD_" + std::to_string(10 + i) + "=" + (i + 1 == pads ? dots : ""));
  return entries;
}

std::vector<std::string> Padded(std::vector<std::string> entries) {
  std::vector<char*> slots;
  for (std::string& entry : entries) slots.push_back(entry.data());
  PadChildVariables(slots);
  return {slots.begin(), slots.end()};
}

size_t Bytes(const std::vector<std::string>& entries) {
  size_t bytes = 0;
  for (const std::string& entry : entries) bytes += entry.size() + 1;
  return bytes;
}

TEST(ChildPaddingTest, TheSameRoomWhateverTheNumbersOfProcesses) {
  const auto a = Padded(Environment("0123 7 s8 0 0 0/1+1", 26, std::string(7000, '.')));
  const auto b = Padded(Environment("0123 25199 s25200 25195 25193 0/1+1", 26, "...."));
  EXPECT_EQ(a.size(), b.size());
  EXPECT_EQ(Bytes(a), Bytes(b));
  EXPECT_EQ(Bytes(a), kChildVariableBytes + std::strlen("HOME=/root") + 1);
}

TEST(ChildPaddingTest, AChildsChildHasItToo) {
  auto once = Padded(Environment("7", 26, "."));
  const size_t bytes = Bytes(once);
  once[2] = "DEJA_CHILD=0123456789";
  EXPECT_EQ(Bytes(Padded(once)), bytes) << "what the longer name takes, the pads give";
}

TEST(ChildPaddingTest, NamesAreStillDistinct) {
  const auto entries = Padded(Padded(Environment("7", 26, std::string(100, '.'))));
  std::set<std::string> names;
  for (const std::string& entry : entries)
    EXPECT_TRUE(names.insert(entry.substr(0, entry.find('='))).second) << entry;
}

TEST(ChildPaddingTest, TooFewPadsOrTooManyBytesAreLeftAlone) {
  const auto few = Environment("7", 5, "..");
  EXPECT_EQ(Padded(few), few);
  const auto large = Padded(Environment(std::string(20000, 'x'), 26, ".."));
  EXPECT_GT(Bytes(large), kChildVariableBytes);
}

}  // namespace
}  // namespace deja::preload
