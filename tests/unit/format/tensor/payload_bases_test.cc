#include "format/tensor/payload_bases.h"

#include <gtest/gtest.h>

#include <string>

#include "format/tensor/payload_series.h"
#include "format/wire/wire.h"

namespace deja::format {
namespace {

using Place = PayloadBases::Place;
using Tried = PayloadBases::Tried;

PayloadBases::Base Base(const std::string& bytes, uint64_t frame, uint32_t differences = 0) {
  return {AsBytes(bytes), frame, differences, bytes.size()};
}

TEST(PayloadBases, TheLastTensorOfAPlaceIsFound) {
  PayloadBases bases(1000);
  const Place place{7, 64, 5, 1};
  EXPECT_EQ(bases.Find(place), nullptr);
  bases.Remember(place, Base("hello", 100), Tried::kNo);
  bases.Remember(place, Base("world", 200), Tried::kSaved);
  const PayloadBases::Base* found = bases.Find(place);
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(AsText(found->bytes), "world");
  EXPECT_EQ(found->frame, 200u);
  EXPECT_EQ(bases.bytes(), 5u);
  EXPECT_EQ(bases.Find({8, 64, 5, 1}), nullptr) << "another series";
  EXPECT_EQ(bases.Find({7, 0, 5, 1}), nullptr) << "another place";
  EXPECT_EQ(bases.Find({7, 64, 4, 1}), nullptr) << "another size";
  bases.Clear();
  EXPECT_EQ(bases.Find(place), nullptr);
  EXPECT_EQ(bases.bytes(), 0u);
}

TEST(PayloadBases, NothingIsRememberedWithoutASeriesOrMemory) {
  PayloadBases bases(1000);
  bases.Remember({0, 0, 5, 0}, Base("hello", 100), Tried::kNo);
  EXPECT_EQ(bases.Find({0, 0, 5, 0}), nullptr);
  PayloadBases none(0);
  none.Remember({1, 0, 5, 0}, Base("hello", 100), Tried::kNo);
  EXPECT_EQ(none.Find({1, 0, 5, 0}), nullptr);
}

TEST(PayloadBases, AChainOfDifferencesEnds) {
  PayloadBases bases(1000);
  bases.Remember({1, 0, 5, 0}, Base("hello", 100, kMaxDifferences - 1), Tried::kSaved);
  EXPECT_NE(bases.Find({1, 0, 5, 0}), nullptr);
  bases.Remember({1, 0, 5, 0}, Base("hello", 100, kMaxDifferences), Tried::kSaved);
  EXPECT_EQ(bases.Find({1, 0, 5, 0}), nullptr);
}

TEST(PayloadBases, MemoryIsBoundedAndWhatIsStaleMakesRoom) {
  PayloadBases bases(10);
  bases.Remember({1, 0, 5, 1}, Base("first", 1), Tried::kNo);
  bases.Remember({2, 0, 5, 1}, Base("other", 2), Tried::kNo);
  bases.Remember({3, 0, 5, 2}, Base("third", 3), Tried::kNo);
  EXPECT_EQ(bases.Find({3, 0, 5, 2}), nullptr) << "the others are of the step before";
  bases.Remember({2, 0, 5, 9}, Base("again", 4), Tried::kNo);
  bases.Remember({3, 0, 5, 9}, Base("third", 5), Tried::kNo);
  EXPECT_NE(bases.Find({2, 0, 5, 9}), nullptr);
  EXPECT_NE(bases.Find({3, 0, 5, 9}), nullptr);
  EXPECT_EQ(bases.Find({1, 0, 5, 9}), nullptr);
  EXPECT_EQ(bases.bytes(), 10u);
  bases.Remember({4, 0, 11, 9}, Base("larger then", 6), Tried::kNo);
  EXPECT_EQ(bases.Find({4, 0, 11, 9}), nullptr);
}

TEST(PayloadBases, TheLastCheckpointStays) {
  constexpr uint32_t kWeights = CheckpointSeries(1);
  constexpr uint32_t kMoments = CheckpointSeries(2);
  PayloadBases bases(10);
  bases.Remember({kWeights, 0, 5, 100}, Base("first", 1), Tried::kNo);
  bases.Remember({7, 0, 5, 198}, Base("grads", 2), Tried::kNo);
  // It was 100 steps before, but at the checkpoint before.
  bases.Remember({kMoments, 0, 5, 200}, Base("first", 3), Tried::kNo);
  EXPECT_EQ(bases.Find({kMoments, 0, 5, 200}), nullptr);
  ASSERT_NE(bases.Find({kWeights, 0, 5, 200}), nullptr);
  bases.Remember({kMoments, 0, 5, 300}, Base("again", 4), Tried::kNo);
  EXPECT_NE(bases.Find({kMoments, 0, 5, 300}), nullptr) << "the gradients are stale";
  EXPECT_EQ(bases.Find({kWeights, 0, 5, 300}), nullptr) << "not in the checkpoint before";
}

TEST(PayloadBases, ADifferenceThatSavesNothingIsTriedLessAndLess) {
  PayloadBases bases(1000);
  int tries = 0;
  for (uint64_t step = 0; step < 300; ++step) {
    const Place place{1, 0, 5, step};
    const bool tried = bases.Find(place) != nullptr;
    tries += tried ? 1 : 0;
    bases.Remember(place, Base("hello", step), tried ? Tried::kSavedNothing : Tried::kNo);
  }
  EXPECT_GT(tries, 3);
  EXPECT_LT(tries, 12);
  // Once it saves, it is tried each time.
  for (uint64_t step = 300; step < 1000; ++step) {
    const Place place{1, 0, 5, step};
    const bool tried = bases.Find(place) != nullptr;
    EXPECT_TRUE(tried || step <= 700);
    bases.Remember(place, Base("hello", step), tried ? Tried::kSaved : Tried::kNo);
  }
}

}  // namespace
}  // namespace deja::format
