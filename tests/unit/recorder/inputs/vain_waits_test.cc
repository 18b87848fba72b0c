#include "recorder/inputs/vain_waits.h"

#include <gtest/gtest.h>

#include <thread>

namespace deja::recorder {
namespace {

TEST(VainWaitsTest, EachProcessIsCountedByItself) {
  VainWaits waits;
  EXPECT_EQ(waits.Count(10), 1U);
  EXPECT_EQ(waits.Count(10), 2U);
  EXPECT_EQ(waits.Count(11), 1U);
  EXPECT_EQ(waits.Take(10), 2U);
  EXPECT_EQ(waits.Take(10), 0U);
  EXPECT_EQ(waits.Take(11), 1U);
}

TEST(VainWaitsTest, EachThreadIsCountedByItself) {
  VainWaits waits;
  EXPECT_EQ(waits.Count(10), 1U);
  std::thread([&] {
    EXPECT_EQ(waits.Count(10), 1U);
    EXPECT_EQ(waits.Take(10), 1U);
  }).join();
  EXPECT_EQ(waits.Take(10), 1U);
}

TEST(VainWaitsTest, WhatDoesNotFitCountsAsNone) {
  VainWaits waits;
  for (int pid = 1; pid <= 64; ++pid) EXPECT_EQ(waits.Count(pid), 1U);
  EXPECT_EQ(waits.Count(65), 0U);
  EXPECT_EQ(waits.Take(65), 0U);
  EXPECT_EQ(waits.Take(1), 1U);
  EXPECT_EQ(waits.Count(65), 1U);
}

}  // namespace
}  // namespace deja::recorder
