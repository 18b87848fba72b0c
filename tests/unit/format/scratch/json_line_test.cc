#include "format/scratch/json_line.h"

#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>
#include <string>

namespace deja::format {
namespace {

nlohmann::json Parse(JsonLine& line) {
  return nlohmann::json::parse(line.Finish());
}

TEST(JsonLineTest, WritesNumbersAndTextThatParse) {
  JsonLine line("test");
  line.Add("max", std::numeric_limits<uint64_t>::max());
  line.Add("min", std::numeric_limits<int64_t>::min());
  line.Add("text", "a\"b\\c\n\x01");
  line.Add("yes", true);
  line.AddDouble("tenth", 0.1);
  line.AddDouble("nan", std::numeric_limits<double>::quiet_NaN());
  const auto json = Parse(line);
  EXPECT_EQ(json["kind"], "test");
  EXPECT_EQ(json["max"], std::numeric_limits<uint64_t>::max());
  EXPECT_EQ(json["min"], std::numeric_limits<int64_t>::min());
  EXPECT_EQ(json["text"], "a\"b\\c\n\x01");
  EXPECT_EQ(json["yes"], true);
  EXPECT_EQ(json["tenth"], 0.1);
  EXPECT_EQ(json["nan"], "nan");
}

TEST(JsonLineTest, NestsArraysOfObjects) {
  JsonLine line("test");
  line.OpenArray("list");
  for (int i = 0; i < 2; ++i) {
    line.OpenObject();
    line.Add("i", i);
    line.Close();
  }
  line.Close();
  line.Add("after", 1);
  const auto json = Parse(line);
  EXPECT_EQ(json["list"].size(), 2u);
  EXPECT_EQ(json["list"][1]["i"], 1);
  EXPECT_EQ(json["after"], 1);
}

TEST(JsonLineTest, StaysValidWhenItIsFull) {
  JsonLine line("test");
  line.OpenArray("list");
  for (int i = 0; i < 10000; ++i) {
    line.OpenObject();
    line.Add("text", std::string(50, 'x'));
    line.Close();
  }
  const auto json = Parse(line);
  EXPECT_EQ(json["kind"], "test");
  EXPECT_EQ(json["cut"], true);
  EXPECT_GT(json["list"].size(), 100u);
}

TEST(JsonLineTest, BytesThatAreNotTextStayValid) {
  JsonLine line("test");
  line.Add("text", std::string("\xff\xfe\x80", 3));
  EXPECT_TRUE(Parse(line)["text"].is_string());
}

}  // namespace
}  // namespace deja::format
