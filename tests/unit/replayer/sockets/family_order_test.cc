// A server's threads answer in the recorded order.
#include "replayer/sockets/family_order.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <cerrno>
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
  void Fail(uint32_t thread, int error, bool sent) {
    format::Transfer transfer;
    transfer.connection = thread + 1;
    transfer.direction = sent ? 1 : 0;
    transfer.number = numbers_[thread]++;
    transfer.result = -1;
    transfer.error = static_cast<uint32_t>(error);
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

TEST_F(FamilyOrderTest, AnEndBeforeAnythingCameIsKnown) {
  Move(0, 20, true);
  Fail(0, 0, false);
  Move(1, 4, false);
  Fail(1, 0, false);
  FamilyOrder& order = Order();
  EXPECT_TRUE(order.EndsUnanswered(0));
  EXPECT_FALSE(order.IsNeverAnswered(0));
  EXPECT_FALSE(order.EndsUnanswered(1));
}

TEST_F(FamilyOrderTest, ATransferThatMovedNothingIsFoundAtItsPlace) {
  Move(0, 4, false);
  Fail(0, ECONNRESET, false);
  Move(1, 8, true);
  Fail(1, EPIPE, true);
  FamilyOrder& order = Order();
  using format::TransferKind;
  EXPECT_FALSE(order.FailureAt(0, TransferKind::kReceived, 0));
  EXPECT_EQ(order.FailureAt(0, TransferKind::kReceived, 4), ECONNRESET);
  EXPECT_FALSE(order.FailureAt(0, TransferKind::kSent, 0));
  EXPECT_EQ(order.FailureAt(1, TransferKind::kSent, 8), EPIPE);
  EXPECT_FALSE(order.IsNeverAnswered(0));
}

TEST_F(FamilyOrderTest, AnEndIsNoError) {
  Move(0, 4, false);
  Move(0, 0, false);
  EXPECT_EQ(Order().FailureAt(0, format::TransferKind::kReceived, 4), 0);
}

TEST_F(FamilyOrderTest, APeerThatEndedBeforeItTookTheConnectionNeverAnswers) {
  Move(0, 4, true);
  Fail(0, ECONNRESET, false);
  FamilyOrder& order = Order();
  EXPECT_TRUE(order.IsNeverAnswered(0));
  EXPECT_FALSE(order.IsNeverAnswered(1));
}

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

TEST_F(FamilyOrderTest, AllIsReceivedWhenEachConnectionHasGotItsLastByte) {
  Move(0, 4, false);
  Move(0, 6, true);
  Move(0, 3, false);
  Move(1, 5, true);
  FamilyOrder& order = Order();
  EXPECT_FALSE(order.IsAllReceived());
  order.Received(0, 4);
  EXPECT_FALSE(order.IsAllReceived());
  order.Received(0, 7);
  EXPECT_TRUE(order.IsAllReceived());
  order.Received(1, 2);  // more than the recording has
  EXPECT_TRUE(order.IsAllReceived());
}

}  // namespace
}  // namespace deja::replayer
