// The report's timeline: what is packed can be read back, and its size has a limit.
#include "cli/report/timeline_data.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "cli/report/packed_numbers.h"
#include "tests/unit/check/made_job.h"

namespace deja::cli {
namespace {

std::string Bytes(const std::string& base64) {
  const std::string digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string bytes;
  uint32_t held = 0;
  int bits = 0;
  for (const char c : base64) {
    if (c == '=') break;
    held = held << 6 | static_cast<uint32_t>(digits.find(c));
    bits += 6;
    if (bits < 8) continue;
    bits -= 8;
    bytes += static_cast<char>(held >> bits & 255);
  }
  return bytes;
}

std::vector<uint64_t> Numbers(const std::string& base64) {
  std::vector<uint64_t> numbers;
  uint64_t number = 0;
  int shift = 0;
  for (const char byte : Bytes(base64)) {
    number |= static_cast<uint64_t>(byte & 127) << shift;
    shift += 7;
    if ((byte & 128) != 0) continue;
    numbers.push_back(number);
    number = 0;
    shift = 0;
  }
  return numbers;
}

nlohmann::json Data(const check::Job& job, const TimelineLimits& limits = {}) {
  const auto operations = check::JoinOperations(job);
  const uint64_t origin = operations.empty() ? 0 : operations.front().begin_ns;
  return TimelineData(job, operations, check::Report{}, origin, limits);
}

TEST(PackedNumbers, AreReadAsTheyWereWritten) {
  PackedNumbers packed;
  for (const uint64_t number : {uint64_t{0}, uint64_t{127}, uint64_t{128}, ~uint64_t{0}})
    packed.Add(number);
  packed.AddSigned(-1);
  packed.AddSigned(2);
  EXPECT_EQ(Numbers(packed.Text()), (std::vector<uint64_t>{0, 127, 128, ~uint64_t{0}, 1, 4}));
  EXPECT_EQ(Base64("a"), "YQ==");
  EXPECT_EQ(Base64("abc"), "YWJj");
}

TEST(TimelineData, HasABarForEachRank) {
  check::MadeJob made(2);
  made.Step(0, 7);
  made.Do(0, check::AllReduce(8), "a.py", 1).lasted_us = 5000;
  made.Wait(2'000'000);
  made.Do(1, check::AllReduce(8), "a.py", 1).lasted_us = 3000;
  const nlohmann::json data = Data(made.Made());
  EXPECT_EQ(data["listed"], 1);
  EXPECT_EQ(data["detailed"], 1);
  EXPECT_EQ(data["signatures"][0], "AllReduce float32[8] sum");
  EXPECT_EQ(data["sites"][0], "a.py:1 in f");
  // flags (has parts), communicator, number, signature, site, step + 1, sequence number, begin, met
  // after, end after, last rank, parts. Then each: flags, rank, begin, length.
  EXPECT_EQ(Numbers(data["operations"]),
            (std::vector<uint64_t>{32, 0, 1, 0,    0, 8, 1,    0,   2000, 5000, 1, 2,  //
                                   0,  0, 0, 5000, 0, 0, 2000, 3000}));
}

TEST(TimelineData, MarksTheRankThatCalledSomethingElse) {
  check::MadeJob made(3);
  made.Do(0, check::AllReduce(9), "b.py", 2);
  made.Do(1, check::AllReduce(8), "a.py", 1);
  made.Do(2, check::AllReduce(8), "a.py", 1);
  const nlohmann::json data = Data(made.Made());
  const std::vector<uint64_t> numbers = Numbers(data["operations"]);
  ASSERT_GT(numbers.size(), 13u);
  EXPECT_EQ(data["signatures"][numbers[3]], "AllReduce float32[8] sum");
  EXPECT_EQ(numbers[12], 8u | 16u);  // differs, misfits
}

TEST(TimelineData, StaysWithinItsLimitsAndKeepsWhatIsInTrouble) {
  check::MadeJob made(4);
  for (int i = 0; i < 500; ++i) {
    if (i == 250)
      made.All(check::AllReduce(8), "bad.py", 3, {.flags = check::kDone | check::kNanIn});
    made.All(check::AllReduce(8), "a.py", 1);
  }
  const nlohmann::json data = Data(made.Made(), {.operations = 50, .parts = 40});
  EXPECT_EQ(data["total"], 501);
  EXPECT_LE(data["listed"].get<size_t>(), 50u);
  EXPECT_GE(data["listed"].get<size_t>(), 25u);
  EXPECT_LE(data["detailed"].get<size_t>(), 10u);
  EXPECT_GE(data["detailed"].get<size_t>(), 5u);
  const auto& sites = data["sites"];
  EXPECT_NE(std::find(sites.begin(), sites.end(), "bad.py:3 in f"), sites.end());
}

TEST(TimelineData, TheHeatMapHasRanksTimesTime) {
  check::MadeJob made(2);
  made.Do(0, check::Barrier(), "a.py", 1).lasted_us = 1000;
  made.Wait(500'000);
  made.Do(1, check::Barrier(), "a.py", 1).lasted_us = 500;
  const nlohmann::json heat = Data(made.Made())["heat"];
  EXPECT_EQ(heat["rows"], 2);
  const std::string cells = Bytes(heat["cells"]);
  ASSERT_EQ(cells.size(), 2 * heat["columns"].get<size_t>());
  EXPECT_EQ(static_cast<uint8_t>(cells[0]), 0xff);  // rank 0 waits at first
  EXPECT_EQ(static_cast<uint8_t>(cells[heat["columns"].get<size_t>()]), 0);  // rank 1 is not there
}

}  // namespace
}  // namespace deja::cli
