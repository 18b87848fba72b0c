// Exports: what other tools read, and that hostile strings are text in each of them.
#include "cli/export/formats.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "cli/export/pickle.h"
#include "cli/output_name.h"
#include "tests/support/sample_trace.h"
#include "tests/unit/check/made_job.h"

namespace deja::cli {
namespace {

const std::string kHostileName = "=cmd|'x'!A1\x1b[2J\",\nnext\u202e";

check::MadeJob MadeForExport() {
  check::MadeJob made(2);
  for (const uint32_t rank : {0u, 1u}) {
    made.Step(rank, 3);
    made[rank].comms[0].name = kHostileName;
  }
  made.All(check::AllReduce(8), kHostileName, 8);
  made.Do(0, check::Of(check::Operation::kAllGather, 4), "a.py", 9, {.flags = 0});
  made.Send(0, 1, 5);
  made.Receive(1, 0, 5);
  return made;
}

std::string TextOf(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

class ExportTest : public testing::Test {
 protected:
  std::string Exported(const std::string& format) {
    for (const ExportFormat& one : ExportFormats()) {
      if (one.name != format) continue;
      const Status written = one.write(source_, path_);
      EXPECT_TRUE(written) << (written ? "" : written.error().message);
    }
    return format == "fr" ? "" : TextOf(path_);
  }

  format::samples::ScratchFolder scratch_;
  std::string path_ = scratch_.path() + "/out";
  check::Job job_ = MadeForExport().Made();
  ExportSource source_{
      "run.deja",     "deja", job_, check::JoinOperations(job_), std::vector<RankFacts>(2),
      check::Report{}};
};

TEST_F(ExportTest, JsonHasOperationsWithTheirParts) {
  const auto json = nlohmann::json::parse(Exported("json"));
  ASSERT_EQ(json["operations"].size(), 3u);
  const auto& part = json["operations"][0]["parts"][1];
  EXPECT_EQ(part["rank"], 1);
  EXPECT_EQ(part["operation"], "AllReduce");
  EXPECT_EQ(part["count"], 8);
  EXPECT_EQ(part["step"], 3);
  EXPECT_EQ(json["operations"][1]["parts"][0]["state"], "open");
  EXPECT_EQ(json["operations"][2]["parts"][0]["peer"], 1);
  EXPECT_EQ(json["ranks"].size(), 2u);
}

TEST_F(ExportTest, JsonOfRanksAlone) {
  source_.operations.clear();
  source_.has_operations = false;
  source_.has_findings = false;
  const auto json = nlohmann::json::parse(Exported("json"));
  EXPECT_EQ(json["ranks"].size(), 2u);
  EXPECT_EQ(json["communicators"].size(), 1u);
  EXPECT_FALSE(json.contains("operations"));
  EXPECT_FALSE(json.contains("check"));
  EXPECT_FALSE(json["ranks"][0].contains("steps"));
}

TEST_F(ExportTest, CsvQuotesAndNeverBeginsAFormula) {
  const std::string text = Exported("csv");
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 6);  // the head, and a row for each part
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
  EXPECT_EQ(text.find(",="), std::string::npos);
  EXPECT_EQ(text.find(",\"="), std::string::npos);
  EXPECT_NE(text.find("\"'=cmd|'x'!A1\\x1b[2J\"\",\\nnext"), std::string::npos) << text;
}

TEST_F(ExportTest, ChromeJoinsRanksByFlows) {
  const auto json = nlohmann::json::parse(Exported("chrome"));
  std::map<std::string, size_t> phases;
  for (const auto& event : json["traceEvents"]) ++phases[event["ph"].get<std::string>()];
  EXPECT_EQ(phases["X"], 5u);
  EXPECT_EQ(phases["s"], 2u);
  EXPECT_EQ(phases["f"], 2u);
}

TEST_F(ExportTest, PerfettoIsASequenceOfPackets) {
  const std::string bytes = Exported("perfetto");
  EXPECT_EQ(bytes.find("\x1b["), std::string::npos);
  size_t packets = 0;
  size_t at = 0;
  while (at < bytes.size()) {
    ASSERT_EQ(bytes[at++], '\x0a');  // a packet
    size_t size = 0;
    for (int shift = 0;; shift += 7) {
      const auto byte = static_cast<uint8_t>(bytes.at(at++));
      size |= static_cast<size_t>(byte & 127) << shift;
      if (byte < 128) break;
    }
    at += size;
    ++packets;
  }
  EXPECT_EQ(at, bytes.size());
  // The state, two ranks, their tracks, four names, and begin and end of five slices.
  EXPECT_EQ(packets, 1u + 2 + 2 + 4 + 10);
}

TEST_F(ExportTest, FlightRecorderDumpsAreOneARank) {
  Exported("fr");
  const std::string first = TextOf(path_ + "/nccl_trace_rank_0");
  EXPECT_EQ(first.substr(0, 2), "\x80\x02");
  EXPECT_EQ(first.back(), '.');
  EXPECT_EQ(first.find("\x1b["), std::string::npos);
  for (const char* text :
       {"nccl:all_reduce", "nccl:_all_gather_base", "nccl:send 0->1", "started", "[0, 1]", "Float"})
    EXPECT_NE(first.find(text), std::string::npos) << text;
  EXPECT_NE(TextOf(path_ + "/nccl_trace_rank_1").find("nccl:recv 1<-0"), std::string::npos);
}

TEST(Pickle, WritesPythonsOpcodes) {
  Pickle pickle;
  pickle.BeginDict();
  pickle.Text("a");
  pickle.BeginTuple();
  pickle.Number(-2);
  pickle.Number(int64_t{1} << 40);
  pickle.EndTuple();
  pickle.EndDict();
  pickle.Stop();
  const char expected[] = "\x80\x02}(X\x01\0\0\0a(J\xfe\xff\xff\xff\x8a\x08\0\0\0\0\0\x01\0\0tu.";
  EXPECT_EQ(pickle.Take(), std::string(expected, sizeof expected - 1));
}

TEST(Lanes, PartsThatOverlapHaveTheirOwn) {
  Lanes lanes;
  check::Part part;
  const auto lane = [&](uint64_t begin, uint64_t end) {
    part.begin_ns = begin;
    part.end_ns = end;
    return lanes.Of(0, 0, part);
  };
  EXPECT_EQ(lane(0, 10), 0u);
  EXPECT_EQ(lane(5, 20), 1u);
  EXPECT_EQ(lane(10, 12), 0u);
  EXPECT_EQ(lanes.Of(1, 0, part), 0u);
}

TEST(OutputName, IsTheTracesWithAnotherEnding) {
  EXPECT_EQ(OutputNameFor("runs/run.deja", ".html"), "run.html");
  EXPECT_EQ(OutputNameFor("run.deja.zip", ".html"), "run.html");
  EXPECT_EQ(OutputNameFor("runs/run.deja/", ".csv"), "run.csv");
}

}  // namespace
}  // namespace deja::cli
