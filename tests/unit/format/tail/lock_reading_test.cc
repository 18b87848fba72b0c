#include "format/tail/lock_reading.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "format/wire/message_codec.h"

namespace deja::format {
namespace {

LockReading Read(ClockSource source, int64_t value) {
  LockReading reading;
  EXPECT_TRUE(ReadLock(source, value, reading));
  return reading;
}

TEST(LockReadingTest, ATurnComesBackAsItWas) {
  std::mt19937_64 random(5);
  for (int i = 0; i < 1000; ++i) {
    const auto use = static_cast<LockUse>(random() % kLockUses);
    const auto counter = static_cast<uint16_t>(random());
    const uint64_t turn = random() >> (24 + random() % 40);
    const ClockSource source = SourceOfTurn(counter);
    EXPECT_TRUE(IsLockReading(source));
    EXPECT_LT(static_cast<size_t>(source), kReadingSources);
    const LockReading reading = Read(source, ValueOfTurn(use, counter, turn));
    EXPECT_TRUE(reading.is_turn);
    EXPECT_EQ(reading.use, use);
    EXPECT_EQ(reading.counter, counter);
    EXPECT_EQ(reading.turn, turn);
  }
}

TEST(LockReadingTest, AnOutcomeComesBackAsItWas) {
  for (const int code : {0, 1, -1, 16, 110, INT32_MIN, INT32_MAX}) {
    const LockReading reading =
        Read(ClockSource::kLockOutcome, ValueOfOutcome(LockUse::kBarrier, 7, code));
    EXPECT_FALSE(reading.is_turn);
    EXPECT_EQ(reading.use, LockUse::kBarrier);
    EXPECT_EQ(reading.code, code);
    EXPECT_EQ(reading.counter, 7);
  }
}

TEST(LockReadingTest, MalformedReadingsAreLeftOut) {
  LockReading reading;
  EXPECT_FALSE(ReadLock(ClockSource::kMonotonic, 7, reading));
  EXPECT_FALSE(ReadLock(ClockSource::kLockTurn, int64_t{kLockUses} << 40, reading));
  EXPECT_FALSE(ReadLock(ClockSource::kLockOutcome, int64_t{kLockUses} << 40, reading));
}

TEST(LockReadingTest, TurnsOfOneLockTakeTwoBytesEach) {
  std::vector<uint8_t> sources(kMaxClockReads);
  std::vector<int64_t> values;
  for (size_t i = 0; i < kMaxClockReads; ++i) {
    sources[i] = static_cast<uint8_t>(SourceOfTurn(0xabcd));
    values.push_back(ValueOfTurn(LockUse::kMutex, 0xabcd, 1'000'000 + i * 50));
  }
  std::byte out[kMaxClockRunBytes];
  const size_t size = EncodeClockRun({1, 2, 3}, sources, values, out);
  EXPECT_LT(size, 2 * kMaxClockReads + 32);
  Event event;
  ASSERT_TRUE(DecodeEvent(std::span(out, size), event));
  std::vector<int64_t> back;
  ForEachReading(*event.As<ClockRun>(), [&](ClockSource source, int64_t value) {
    EXPECT_EQ(source, SourceOfTurn(0xabcd));
    back.push_back(value);
  });
  EXPECT_EQ(back, values);
}

}  // namespace
}  // namespace deja::format
