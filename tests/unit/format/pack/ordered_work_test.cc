#include "format/pack/ordered_work.h"

#include <gtest/gtest.h>

#include <atomic>
#include <vector>

namespace deja::format {
namespace {

class OrderedWorkTest : public ::testing::TestWithParam<size_t> {
 protected:
  // A job that takes longer the earlier it comes. Where there is a `failure` its delivery fails.
  OrderedWork::Job Job(int number, const char* failure = nullptr) {
    return {[this, number](size_t worker) {
              EXPECT_LT(worker, work_.workers());
              EXPECT_EQ(in_use_[worker].exchange(true), false);
              volatile int sum = 0;
              for (int i = 0; i < 1000 * (20 - number % 20); ++i) sum = sum + i;
              ++worked_;
              in_use_[worker] = false;
            },
            [this, number, failure]() -> Status {
              delivered_.push_back(number);
              if (failure != nullptr) return Fail(ErrorCode::kIo, failure);
              return {};
            }};
  }

  OrderedWork work_{GetParam()};
  std::atomic<bool> in_use_[64] = {};
  std::atomic<int> worked_{0};
  std::vector<int> delivered_;
};

TEST_P(OrderedWorkTest, ResultsComeInTheOrderOfTheJobs) {
  std::vector<int> all;
  for (int i = 0; i < 500; ++i) {
    all.push_back(i);
    ASSERT_TRUE(work_.Give(Job(i)));
    EXPECT_LE(all.size() - delivered_.size(), 4 * work_.workers());
  }
  EXPECT_TRUE(work_.Finish());
  EXPECT_EQ(delivered_, all);
  EXPECT_EQ(worked_, 500);
  EXPECT_TRUE(work_.Finish());
}

TEST_P(OrderedWorkTest, NothingIsDeliveredAfterAFailure) {
  for (int i = 0; i < 10; ++i) (void)work_.Give(Job(i, i == 3 ? "full" : nullptr));
  const Status status = work_.Finish();
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().message, "full");
  EXPECT_EQ(delivered_, (std::vector<int>{0, 1, 2, 3}));
  work_.Discard();
  EXPECT_TRUE(work_.Give(Job(11)));
  EXPECT_TRUE(work_.Finish());
  EXPECT_EQ(delivered_.back(), 11);
}

TEST_P(OrderedWorkTest, DiscardedWorkIsNotDelivered) {
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(work_.Give(Job(i)));
  const size_t before = delivered_.size();
  { const OrderedWork::Scope scope(work_); }
  EXPECT_TRUE(work_.Finish());
  EXPECT_EQ(delivered_.size(), before);
  EXPECT_TRUE(work_.Give(Job(7)));
  EXPECT_TRUE(work_.Finish());
  EXPECT_EQ(delivered_.back(), 7);
}

INSTANTIATE_TEST_SUITE_P(Threads, OrderedWorkTest, ::testing::Values(1, 2, 5));

}  // namespace
}  // namespace deja::format
