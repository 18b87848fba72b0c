#include "replayer/plan/lock_stream.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace deja::replayer {
namespace {

using format::ClockSource;
using format::LockReading;
using format::LockUse;

struct Added {
  uint64_t segment;
  bool is_turn;
  LockUse use;
  uint16_t counter;
  uint64_t turn;
  int32_t code;
};

TEST(LockStreamTest, ReadingsComeBackInOrder) {
  std::mt19937_64 random(11);
  LockStream stream;
  std::vector<Added> added;
  uint64_t segment = 0;
  for (int i = 0; i < 2000; ++i) {
    segment += random() % 10 == 0 ? random() % 3 : 0;
    Added a{segment, random() % 4 != 0, static_cast<LockUse>(random() % format::kLockUses), 0, 0,
            0};
    if (a.is_turn) {
      a.counter = static_cast<uint16_t>(random() % 5 * 1000);
      a.turn = random() >> (24 + random() % 40);
      stream.Add(segment, format::SourceOfTurn(a.counter),
                 format::ValueOfTurn(a.use, a.counter, a.turn));
    } else {
      a.code = static_cast<int32_t>(random() % 200) - 1;
      stream.Add(segment, ClockSource::kLockOutcome,
                 format::ValueOfOutcome(a.use, a.counter, a.code));
    }
    added.push_back(a);
  }
  EXPECT_EQ(stream.size(), added.size());
  LockStream::Cursor at(&stream);
  for (const Added& a : added) {
    const LockReading* reading = at.Peek();
    ASSERT_NE(reading, nullptr);
    EXPECT_EQ(at.segment(), a.segment);
    EXPECT_EQ(reading->is_turn, a.is_turn);
    EXPECT_EQ(reading->use, a.use);
    EXPECT_EQ(reading->counter, a.counter);
    EXPECT_EQ(reading->turn, a.turn);
    EXPECT_EQ(reading->code, a.code);
    at.Move();
  }
  EXPECT_EQ(at.Peek(), nullptr);
  EXPECT_EQ(at.passed(), added.size());
}

TEST(LockStreamTest, ACopyOfACursorGoesItsOwnWay) {
  LockStream stream;
  for (uint64_t turn = 0; turn < 3; ++turn)
    stream.Add(0, format::SourceOfTurn(9), format::ValueOfTurn(LockUse::kMutex, 9, turn * 7));
  LockStream::Cursor at(&stream);
  LockStream::Cursor ahead = at;
  ahead.Move();
  ahead.Move();
  EXPECT_EQ(ahead.Peek()->turn, 14);
  EXPECT_EQ(at.Peek()->turn, 0);
  at.Move();
  EXPECT_EQ(at.Peek()->turn, 7);
}

TEST(LockStreamTest, ReadingsOfANewerVersionAreLeftOut) {
  LockStream stream;
  stream.Add(0, ClockSource::kLockTurn, int64_t{format::kLockUses} << 40);
  EXPECT_TRUE(stream.empty());
  EXPECT_EQ(LockStream::Cursor(&stream).Peek(), nullptr);
  EXPECT_EQ(LockStream::Cursor().Peek(), nullptr);
}

}  // namespace
}  // namespace deja::replayer
