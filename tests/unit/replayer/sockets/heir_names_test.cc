#include "replayer/sockets/heir_names.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <string_view>

namespace deja::replayer {
namespace {

using std::literals::string_view_literals::operator""sv;

class Pair {
 public:
  Pair() { EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends_.data()), 0); }
  ~Pair() {
    for (const int end : ends_) close(end);
  }
  Pair(const Pair&) = delete;
  Pair& operator=(const Pair&) = delete;
  [[nodiscard]] int end() const { return ends_[0]; }

 private:
  std::array<int, 2> ends_ = {-1, -1};
};

TEST(HeirNames, ASocketIsFoundByWhatItLeadsToAtAnyNumber) {
  const Pair pair;
  const uint64_t key = HeirKey("/scratch", "local", "remote");
  EXPECT_FALSE(IsNamedForHeirs(pair.end(), key)) << "no name yet";
  NameForHeirs(pair.end(), key);
  EXPECT_TRUE(IsNamedForHeirs(pair.end(), key));
  const int copy = dup(pair.end());
  EXPECT_TRUE(IsNamedForHeirs(copy, key));
  close(copy);
  EXPECT_FALSE(IsNamedForHeirs(pair.end(), HeirKey("/other", "local", "remote")));
  EXPECT_FALSE(IsNamedForHeirs(pair.end(), HeirKey("/scratch", "local", "")));
  EXPECT_FALSE(IsNamedForHeirs(pair.end(), HeirKey("/scratch", "", "localremote")));
}

TEST(HeirNames, TwoSocketsMayLeadToTheSame) {
  const Pair first;
  const Pair second;
  const uint64_t key = HeirKey("/scratch", "local", "");
  NameForHeirs(first.end(), key);
  NameForHeirs(second.end(), key);
  EXPECT_TRUE(IsNamedForHeirs(first.end(), key));
  EXPECT_TRUE(IsNamedForHeirs(second.end(), key));
}

TEST(HeirNames, AFileNameEndsWithAZeroOrNot) {
  EXPECT_EQ(HeirKey("/scratch", "\1\0/run/x\0"sv, ""), HeirKey("/scratch", "\1\0/run/x"sv, ""));
  EXPECT_NE(HeirKey("/scratch", "\1\0\0x"sv, ""), HeirKey("/scratch", "\1\0x"sv, ""));
}

TEST(HeirNames, WhatIsNoSocketHasNone) {
  std::array<int, 2> ends = {-1, -1};
  ASSERT_EQ(pipe(ends.data()), 0);
  const uint64_t key = HeirKey("/scratch", "local", "");
  errno = EDOM;
  NameForHeirs(ends[0], key);
  EXPECT_FALSE(IsNamedForHeirs(ends[0], key));
  EXPECT_FALSE(IsNamedForHeirs(-1, key));
  EXPECT_EQ(errno, EDOM);
  for (const int end : ends) close(end);
}

}  // namespace
}  // namespace deja::replayer
