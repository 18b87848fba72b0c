#include "replayer/divergence.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>

namespace deja::replayer {
namespace {

constexpr uint32_t kInt64 = 4;
constexpr uint32_t kFloat32 = 7;
constexpr uint32_t kFloat64 = 8;
constexpr uint32_t kBfloat16 = 9;

template <typename T>
std::span<const std::byte> BytesOf(const std::vector<T>& values) {
  return std::as_bytes(std::span(values));
}

TEST(CompareElementsTest, FindsTheFirstElementAndCountsAll) {
  std::vector<float> recorded{1, 2, 3, 4};
  std::vector<float> live{1, std::nextafter(2.0f, 3.0f), 3, 5};
  const ElementDifference difference = CompareElements(BytesOf(recorded), BytesOf(live), kFloat32);
  ASSERT_TRUE(difference.found);
  EXPECT_EQ(difference.first, 1u);
  EXPECT_EQ(difference.different, 2u);
  EXPECT_EQ(difference.ulps, 1u);
  EXPECT_EQ(difference.recorded, "2");
  EXPECT_EQ(difference.live, "2.0000002");
}

TEST(CompareElementsTest, DistanceCrossesZeroAndNanHasNone) {
  const float tiny = std::numeric_limits<float>::denorm_min();
  std::vector<float> recorded{-tiny};
  std::vector<float> live{tiny};
  EXPECT_EQ(CompareElements(BytesOf(recorded), BytesOf(live), kFloat32).ulps, 2u);
  live[0] = std::nanf("");
  const ElementDifference difference = CompareElements(BytesOf(recorded), BytesOf(live), kFloat32);
  EXPECT_EQ(difference.ulps, UINT64_MAX);
  EXPECT_EQ(difference.live, "nan");
}

TEST(CompareElementsTest, EqualBytesHaveNoDifference) {
  std::vector<double> same{0.1, -0.0};
  EXPECT_FALSE(CompareElements(BytesOf(same), BytesOf(same), kFloat64).found);
}

TEST(CompareElementsTest, SignedZerosDifferByTheirBytes) {
  std::vector<double> recorded{0.0};
  std::vector<double> live{-0.0};
  const ElementDifference difference = CompareElements(BytesOf(recorded), BytesOf(live), kFloat64);
  ASSERT_TRUE(difference.found);
  EXPECT_EQ(difference.recorded, "0");
  EXPECT_EQ(difference.live, "-0");
}

TEST(ElementTextTest, GivesTheValueBack) {
  const double tenth = 0.1;
  EXPECT_EQ(ElementText(reinterpret_cast<const std::byte*>(&tenth), kFloat64), "0.1");
  const int64_t lowest = std::numeric_limits<int64_t>::min();
  EXPECT_EQ(ElementText(reinterpret_cast<const std::byte*>(&lowest), kInt64),
            "-9223372036854775808");
  const uint16_t one_and_a_half = 0x3fc0;
  EXPECT_EQ(ElementText(reinterpret_cast<const std::byte*>(&one_and_a_half), kBfloat16), "1.5");
  const uint8_t byte = 0x3f;
  EXPECT_EQ(ElementText(reinterpret_cast<const std::byte*>(&byte), format::kRawBytes), "0x3f");
}

Divergence InputDivergence() {
  Divergence divergence;
  divergence.kind = DivergenceKind::kInput;
  divergence.thread = "0";
  divergence.api = "AllReduce";
  divergence.has_step = true;
  divergence.step = 17;
  divergence.comm = 1;
  divergence.comm_rank = 2;
  divergence.comm_nranks = 4;
  divergence.comm_seq = 412;
  divergence.tensor = "sendbuff";
  divergence.dtype = kFloat32;
  divergence.count = 1024;
  return divergence;
}

TEST(DivergenceTest, NamesEverythingWhenTheBytesAreThere) {
  Divergence divergence = InputDivergence();
  divergence.element = {true, 81, 3, 1, "0.25", "0.25000003"};
  EXPECT_EQ(divergence.Describe(),
            "step 17, AllReduce #412 of comm 0 (rank 2 of 4): input sendbuff differs from the "
            "recording at element 81 of 1024 (float32): recorded 0.25, live 0.25000003, 1 ULP "
            "apart; 3 elements differ");
}

TEST(DivergenceTest, GivesDigestsAndStatisticsWhenTheyAreNot) {
  Divergence divergence = InputDivergence();
  divergence.recorded_stats.sum = 1.5;
  divergence.live_stats.nan_count = 2;
  const std::string text = divergence.Describe();
  EXPECT_NE(text.find("sum 1.5"), std::string::npos) << text;
  EXPECT_NE(text.find("2 NaN"), std::string::npos) << text;
  EXPECT_NE(text.find("not kept"), std::string::npos) << text;
}

TEST(DivergenceTest, OtherThreadsAreNamed) {
  Divergence divergence = InputDivergence();
  divergence.kind = DivergenceKind::kCall;
  divergence.thread = "0.2";
  divergence.what = "the recorded run called Broadcast here";
  EXPECT_EQ(divergence.Describe(),
            "step 17, AllReduce #412 of comm 0 (rank 2 of 4), thread 0.2: the recorded run called "
            "Broadcast here");
}

TEST(DivergenceTest, IsOneLineOfJsonWithBothStacks) {
  Divergence divergence = InputDivergence();
  divergence.element = {true, 81, 1, UINT64_MAX, "nan", "1"};
  divergence.recorded_stack = {{"/bin/a\"b", std::string("\x01\xff", 2), 0x1234}};
  divergence.live_stack = {{"", "", 7}};
  JsonLine line("divergence");
  divergence.WriteTo(line);
  const std::string_view text = line.Finish();
  EXPECT_EQ(text.find('\n'), text.size() - 1);
  const auto json = nlohmann::json::parse(text);
  EXPECT_EQ(json["divergence"], "input");
  EXPECT_EQ(json["comm"], 0);
  EXPECT_EQ(json["element"]["index"], 81);
  EXPECT_FALSE(json["element"].contains("ulps"));
  EXPECT_EQ(json["recorded_stack"][0]["module"], "/bin/a\"b");
  EXPECT_EQ(json["recorded_stack"][0]["build_id"], "01ff");
  EXPECT_EQ(json["live_stack"][0]["offset"], 7);
}

}  // namespace
}  // namespace deja::replayer
