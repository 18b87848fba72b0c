// A server's threads answer in the recorded order.
#include "replayer/sockets/family_order.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <map>
#include <memory>

#include "tests/unit/replayer/fake_rank.h"

namespace deja::replayer {
namespace {

class FamilyOrderTest : public testing::Test {
 protected:
  FamilyOrderTest() {
    for (uint32_t thread = 0; thread < 2; ++thread) {
      rank_.Thread(thread, thread == 0 ? "0" : "0.1");
      format::ConnectionOpened opened;
      opened.connection = thread + 1;
      opened.kind = static_cast<uint32_t>(format::ConnectionKind::kConnected);
      opened.name = thread == 0 ? "a" : "b";
      opened.type = SOCK_STREAM;
      rank_.Add(thread, opened);
    }
  }
  void Move(uint32_t thread, int64_t bytes, bool sent) {
    format::Transfer transfer;
    transfer.connection = thread + 1;
    transfer.direction = sent ? 1 : 0;
    transfer.number = numbers_[thread]++;
    transfer.result = bytes;
    rank_.Add(thread, transfer);
  }
  FamilyOrder& Order() {
    auto plan = ReplayPlan::Build(rank_, {[](uint32_t) { return CallKind::kOrdered; },
                                          [](uint32_t) { return false; }, api::InputKindOf});
    plan_ = std::move(*plan);
    order_ = std::make_unique<FamilyOrder>(*plan_, [](uint32_t) { return true; });
    return *order_;
  }

  FakeRank rank_;
  std::map<uint32_t, uint64_t> numbers_;
  std::unique_ptr<ReplayPlan> plan_;
  std::unique_ptr<FamilyOrder> order_;
};

TEST_F(FamilyOrderTest, TheLaterAnswerGoesOnAfterTheEarlierOne) {
  Move(0, 4, false);
  Move(1, 4, false);
  Move(1, 8, true);  // the second thread was faster
  Move(0, 8, true);
  FamilyOrder& order = Order();
  const uint64_t slow = order.AnswerTo(0, 4);
  const uint64_t fast = order.AnswerTo(1, 4);
  EXPECT_LT(fast, slow);
  EXPECT_TRUE(order.MayGoOn(1, fast));
  EXPECT_FALSE(order.MayGoOn(0, slow));
  order.Sent(1, 7);
  EXPECT_FALSE(order.MayGoOn(0, slow));
  order.Sent(1, 8);
  EXPECT_TRUE(order.MayGoOn(0, slow));
}

TEST_F(FamilyOrderTest, ARequestIsAnsweredFromItsFirstByteOn) {
  Move(0, 4, false);
  Move(0, 10, false);
  Move(0, 2, true);
  Move(0, 4, false);
  FamilyOrder& order = Order();
  const uint64_t first = order.AnswerTo(0, 1);
  EXPECT_EQ(order.AnswerTo(0, 4), first);
  EXPECT_EQ(order.AnswerTo(0, 14), first);
  // Nothing was sent after the last one; the recording has no more.
  EXPECT_GT(order.AnswerTo(0, 18), first);
  EXPECT_EQ(order.AnswerTo(0, 19), 0u);
}

TEST_F(FamilyOrderTest, AnAnswerThatDoesNotComeGivesWay) {
  Move(0, 4, false);
  Move(1, 4, false);
  Move(1, 8, true);
  Move(0, 8, true);
  FamilyOrder& order = Order();
  const uint64_t slow = order.AnswerTo(0, 4);
  EXPECT_FALSE(order.MayGoOn(0, slow));
  order.GiveWay(slow);
  EXPECT_TRUE(order.MayGoOn(0, slow));
}

}  // namespace
}  // namespace deja::replayer
