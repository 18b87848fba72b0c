#include "format/tail/clock_run.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "format/wire/message_codec.h"

namespace deja::format {
namespace {

struct Readings {
  std::vector<uint8_t> sources;
  std::vector<int64_t> values;
};

std::string Encoded(const EventHead& head, const Readings& readings) {
  std::string out(kMaxClockRunBytes, '\0');
  out.resize(EncodeClockRun(head, readings.sources, readings.values,
                            reinterpret_cast<std::byte*>(out.data())));
  return out;
}

Readings Decoded(const std::string& bytes) {
  Event event;
  EXPECT_TRUE(DecodeEvent(AsBytes(bytes), event));
  Readings readings;
  const auto* run = event.As<ClockRun>();
  EXPECT_NE(run, nullptr);
  if (run == nullptr) return readings;
  // The encoder for one message knows nothing of this one, and writes the same.
  EXPECT_EQ(EncodeEventToString(event, *run), bytes);
  ForEachReading(*run, [&](ClockSource source, int64_t value) {
    readings.sources.push_back(static_cast<uint8_t>(source));
    readings.values.push_back(value);
  });
  return readings;
}

TEST(ClockRunTest, AnyReadingsComeBackAsTheyWere) {
  std::mt19937_64 random(3);
  for (int round = 0; round < 500; ++round) {
    Readings readings;
    const size_t count = 1 + random() % kMaxClockReads;
    const bool mixed = random() % 2 == 0;
    for (size_t i = 0; i < count; ++i) {
      readings.sources.push_back(static_cast<uint8_t>(mixed ? 1 + random() % 35 : 2));
      readings.values.push_back(static_cast<int64_t>(random() >> random() % 64));
    }
    const EventHead head{static_cast<uint32_t>(random() % 3), random() % 1000, random()};
    const Readings back = Decoded(Encoded(head, readings));
    ASSERT_EQ(back.sources, readings.sources) << "round " << round;
    ASSERT_EQ(back.values, readings.values) << "round " << round;
  }
}

TEST(ClockRunTest, TheLargestFits) {
  Readings readings;
  for (uint32_t i = 0; i < kMaxClockReads; ++i) {
    readings.sources.push_back(static_cast<uint8_t>(1 + i % 2));
    readings.values.push_back(i % 4 < 2 ? INT64_MAX : INT64_MIN);
  }
  const std::string bytes = Encoded({UINT32_MAX - 1, UINT64_MAX, UINT64_MAX}, readings);
  EXPECT_LT(bytes.size(), kMaxClockRunBytes);
  EXPECT_EQ(Decoded(bytes).values, readings.values);
}

TEST(ClockRunTest, ReadingsOfAClockOfTheFutureAreLeftOut) {
  ClockRun run;
  run.sources = {2, 200, 2};
  run.deltas = {10, 20, 30};
  std::vector<int64_t> values;
  ForEachReading(run, [&](ClockSource, int64_t value) { values.push_back(value); });
  EXPECT_EQ(values, (std::vector<int64_t>{10, 40}));
}

}  // namespace
}  // namespace deja::format
