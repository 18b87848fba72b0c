// Where Python's collector runs, as a recording has it.
#include <tuple>
#include <vector>

#include "common/ids.h"
#include "tests/unit/recorder/core/recorder_engine_fixture.h"

namespace deja::recorder {
namespace {

class CollectionsTest : public RecorderEngineTest {
 protected:
  void SetUp() override {
    RecorderEngineTest::SetUp();
    InitRank(kComm);
  }
  void Begins(uint32_t generation) { engine_->OnCollection({generation, false, true}); }
  void Ends(uint32_t generation) { engine_->OnCollection({generation, true, true}); }

  // As (generation, ended).
  using Short = std::tuple<uint32_t, bool>;
  std::vector<Short> Written() {
    std::vector<Short> all;
    for (const auto& one : All<format::GarbageCollection>())
      all.emplace_back(one.generation, one.ended);
    return all;
  }
};

TEST_F(CollectionsTest, TheEndIsWrittenIfTheThreadDidSomething) {
  Begins(0);
  Ends(0);
  AllReduce(kComm);
  Begins(1);
  AllReduce(kComm);
  Ends(1);
  EXPECT_THAT(Written(), ElementsAre(Short(0, false), Short(1, false), Short(1, true)));
}

TEST_F(CollectionsTest, BetweenTwoEventsTheOldestIsEnough) {
  for (const uint32_t generation : {0, 0, 1, 0, 2, 1, 2}) {
    Begins(generation);
    Ends(generation);
  }
  AllReduce(kComm);
  Begins(0);
  EXPECT_THAT(Written(),
              ElementsAre(Short(0, false), Short(1, false), Short(2, false), Short(0, false)));
}

TEST_F(CollectionsTest, TheEndSaysWhenABeginningWasThatIsNotWritten) {
  Begins(1);
  Ends(1);
  const uint64_t before_ns = EventWriter::NowNs(preload::Self());
  Begins(0);
  AllReduce(kComm);
  Ends(0);
  EXPECT_THAT(Written(), ElementsAre(Short(1, false), Short(0, true)));
  for (const format::Event& event : log().Events()) {
    const auto* end = event.As<format::GarbageCollection>();
    if (end == nullptr || !end->ended) continue;
    EXPECT_GE(event.time_ns - end->lasted_ns, before_ns);
  }
}

TEST_F(CollectionsTest, ReadingsOfClocksAreNoEventsBetween) {
  Begins(0);
  engine_->OnClock(format::ClockSource::kMonotonic, 5);
  Ends(0);
  Begins(0);
  engine_->OnClock(format::ClockSource::kMonotonic, 6);
  Ends(0);
  EXPECT_THAT(Written(), ElementsAre(Short(0, false)));
}

}  // namespace
}  // namespace deja::recorder
