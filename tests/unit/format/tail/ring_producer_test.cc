// What a signal handler can tell of the event that it has interrupted.
#include "format/tail/ring_producer.h"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <span>

#include "format/tail/event_ring.h"

namespace deja::format {
namespace {

class RingProducerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ring_.Attach(&info_, bytes_.data(), bytes_.size());
    producer_.Attach(&info_, bytes_.data(), bytes_.size(), &ring_.gate());
  }
  bool Append() { return producer_.TryAppend(std::span<const std::byte>(event_)); }

  std::array<std::byte, 24> event_{};
  alignas(64) std::array<std::byte, 1024> bytes_{};
  RingInfo info_{};
  EventRing ring_;
  RingProducer producer_;
};

TEST_F(RingProducerTest, AnEventThatIsThereWhileItsThreadIsBusyIsKnown) {
  for (int i = 0; i < 3; ++i) {
    producer_.SetBusy();
    EXPECT_FALSE(producer_.has_published());
    ASSERT_TRUE(Append());
    EXPECT_TRUE(producer_.busy() && producer_.has_published());
    producer_.SetIdle();
  }
}

TEST_F(RingProducerTest, AnEventForWhichThereIsNoRoomIsNotThere) {
  while (Append()) {
  }
  producer_.SetBusy();
  EXPECT_FALSE(Append());
  EXPECT_FALSE(producer_.has_published());
}

TEST_F(RingProducerTest, AnEventOfABusyThreadIsNotCountedAgain) {
  producer_.SetBusy(true);
  ASSERT_TRUE(Append());
  EXPECT_FALSE(producer_.has_published());
}

}  // namespace
}  // namespace deja::format
