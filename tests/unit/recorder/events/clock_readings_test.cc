// Readings for waits for Python's interpreter lock have a source of their own.
#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "api/libc_table.h"
#include "format/tail/clock_run.h"
#include "tests/unit/recorder/core/recorder_engine_fixture.h"

namespace deja::recorder {
namespace {

using format::ClockSource;

class ClockReadingsTest : public RecorderEngineTest {
 protected:
  void Wait(int64_t ns) {
    engine_->OnClock(ClockSource::kMonotonic, ns);
    engine_->OnUnseenReading(ClockSource::kMonotonic, preload::UnseenReading::kInterpreterWait);
  }
  std::vector<std::pair<ClockSource, int64_t>> Readings() {
    std::vector<std::pair<ClockSource, int64_t>> all;
    for (const auto& run : All<format::ClockRun>())
      format::ForEachReading(run,
                             [&](ClockSource source, int64_t ns) { all.emplace_back(source, ns); });
    return all;
  }
};

TEST_F(ClockReadingsTest, AWaitNamesTheReadingBeforeIt) {
  engine_->OnUnseenReading(ClockSource::kMonotonic, preload::UnseenReading::kInterpreterWait);
  Wait(10);
  Wait(20);
  EXPECT_EQ(engine_->OnClock(ClockSource::kMonotonic, 30), 30);
  engine_->OnClock(ClockSource::kRealtime, 40);
  engine_->OnUnseenReading(ClockSource::kMonotonic, preload::UnseenReading::kInterpreterWait);
  Wait(50);
  InitRank(kComm);
  const std::vector<std::pair<ClockSource, int64_t>> expected{{ClockSource::kInterpreterWait, 10},
                                                              {ClockSource::kInterpreterWait, 20},
                                                              {ClockSource::kMonotonic, 30},
                                                              {ClockSource::kRealtime, 40},
                                                              {ClockSource::kInterpreterWait, 50}};
  EXPECT_EQ(Readings(), expected);
}

TEST_F(ClockReadingsTest, ALockOfPythonsNamesItsReading) {
  engine_->OnClock(ClockSource::kMonotonic, 10);
  engine_->OnClock(ClockSource::kMonotonic, 20);
  engine_->OnUnseenReading(ClockSource::kMonotonic, preload::UnseenReading::kPythonLock);
  InitRank(kComm);
  const std::vector<std::pair<ClockSource, int64_t>> expected{{ClockSource::kMonotonic, 10},
                                                              {ClockSource::kPythonLock, 20}};
  EXPECT_EQ(Readings(), expected);
}

TEST_F(ClockReadingsTest, AReadingThatAnEventHasFollowedStays) {
  engine_->OnClock(ClockSource::kMonotonic, 10);
  Input(static_cast<uint32_t>(api::LibcApi::kgetrandom), "x");
  engine_->OnUnseenReading(ClockSource::kMonotonic, preload::UnseenReading::kInterpreterWait);
  InitRank(kComm);
  engine_->OnUnseenReading(ClockSource::kMonotonic, preload::UnseenReading::kInterpreterWait);
  const std::vector<std::pair<ClockSource, int64_t>> expected{{ClockSource::kMonotonic, 10}};
  EXPECT_EQ(Readings(), expected);
}

}  // namespace
}  // namespace deja::recorder
