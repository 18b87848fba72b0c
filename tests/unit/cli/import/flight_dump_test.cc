// Dumps of the Flight Recorder: what is read of them, and the trace that they become.
#include "cli/import/flight_dump.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "check/check.h"
#include "check/evidence/summarize.h"
#include "cli/import/import_trace.h"
#include "format/reader/imported.h"
#include "format/trace/trace.h"
#include "tests/support/sample_trace.h"

namespace deja::cli {
namespace {

constexpr uint64_t kDumpSecond = 1'000'000'000;
constexpr uint64_t kBegin = 1'700'000'000 * kDumpSecond;

nlohmann::json Entry(uint64_t number, const char* name, bool is_done) {
  return {{"record_id", number},
          {"process_group", {"0", "default_pg"}},
          {"collective_seq_id", number},
          {"p2p_seq_id", 0},
          {"profiling_name", name},
          {"time_created_ns", kBegin + number * kDumpSecond},
          {"input_sizes", {{2, 3}}},
          {"input_dtypes", {"Float"}},
          {"output_sizes", {{2, 3}}},
          {"output_dtypes", {"Float"}},
          {"state", is_done ? "completed" : "scheduled"},
          {"time_discovered_completed_ns", kBegin + number * kDumpSecond + 1000},
          {"timeout_ms", 60'000},
          {"is_p2p", false},
          {"frames", {{{"name", "train"}, {"filename", "/job/train.py"}, {"line", 7}}}}};
}

class FlightDumpTest : public testing::Test {
 protected:
  // A dump of this rank with these entries.
  void Write(uint32_t rank, const std::vector<nlohmann::json>& entries) {
    const nlohmann::json dump = {
        {"version", "2.10"},
        {"pg_config", {{"0", {{"name", "0"}, {"desc", "default_pg"}, {"ranks", "[0, 1]"}}}}},
        {"entries", entries}};
    std::ofstream(folder_ + "/rank_" + std::to_string(rank)) << dump.dump();
  }

  ImportSummary Import() {
    const auto dumps = ReadFlightDumps({folder_});
    EXPECT_TRUE(dumps) << (dumps ? "" : dumps.error().message);
    const auto summary = ImportTrace(*dumps, out_);
    EXPECT_TRUE(summary) << (summary ? "" : summary.error().message);
    return *summary;
  }

  class NoPlaces final : public check::PlaceFinder {
   public:
    check::Site Find(const std::vector<check::CodeAddress>& stack, bool) override {
      modules.push_back(stack.empty() ? "" : stack.front().module);
      return {};
    }
    std::vector<std::string> modules;
  };

  check::Report CheckIt() {
    const auto trace = std::move(*format::Trace::Open(out_));
    std::vector<check::RankSummary> summaries;
    for (const format::RankFolder& folder : trace->ranks()) {
      const format::RankReader& reader = **trace->Rank(folder.rank);
      EXPECT_TRUE(format::IsImported(reader.header().producer));
      summaries.push_back(check::Summarize(reader, places_, {}));
    }
    return check::Check(check::Job(std::move(summaries)));
  }

  format::samples::ScratchFolder scratch_;
  std::string folder_ = scratch_.path();
  std::string out_ = scratch_.path() + "/out.deja";
  NoPlaces places_;
};

TEST_F(FlightDumpTest, ARankThatNeverEntersIsFound) {
  Write(0, {Entry(1, "nccl:all_reduce", true), Entry(2, "nccl:all_reduce", false)});
  Write(1, {Entry(1, "nccl:all_reduce", true)});
  EXPECT_EQ(Import().operations, 3u);
  const check::Report report = CheckIt();
  ASSERT_FALSE(report.findings.empty());
  EXPECT_EQ(report.findings.front().blamed, std::vector<uint32_t>{1});
  ASSERT_FALSE(places_.modules.empty());
  EXPECT_EQ(places_.modules.front(), "python:train:/job/train.py");
}

TEST_F(FlightDumpTest, AnotherOperationIsFound) {
  Write(0, {Entry(1, "nccl:all_reduce", false)});
  Write(1, {Entry(1, "nccl:_all_gather_base", false)});
  Import();
  const check::Report report = CheckIt();
  ASSERT_FALSE(report.findings.empty());
  EXPECT_EQ(report.findings.front().kind, check::Kind::kSignature);
}

TEST_F(FlightDumpTest, RingsThatBeginElsewhereMeetAtTheFirstOfAll) {
  Write(0, {Entry(5, "nccl:all_reduce", true), Entry(6, "nccl:broadcast", true)});
  Write(1, {Entry(6, "nccl:broadcast", true)});
  const ImportSummary summary = Import();
  EXPECT_EQ(summary.operations, 2u);
  ASSERT_FALSE(summary.missing.empty());
  EXPECT_NE(summary.missing.front().find("#6"), std::string::npos) << summary.missing.front();
  EXPECT_TRUE(CheckIt().findings.empty());
}

TEST_F(FlightDumpTest, AJobThatIsWellHasNoFinding) {
  for (const uint32_t rank : {0u, 1u})
    Write(rank, {Entry(1, "gloo:all_reduce", true), Entry(2, "gloo:barrier", true)});
  Import();
  EXPECT_TRUE(CheckIt().findings.empty());
}

TEST_F(FlightDumpTest, NumbersThatNoClockTellsAreReadAsTheNearest) {
  std::vector<nlohmann::json> entries = {Entry(1, "gloo:all_reduce", true)};
  const auto created = [&](double time) {
    entries[0]["time_created_ns"] = time;
    entries[0]["input_sizes"] = {{time, 3}};
    Write(0, entries);
    const auto dump = ReadFlightDump(folder_ + "/rank_0");
    return dump && !dump->entries.empty() ? dump->entries[0].created_ns : 1;
  };
  EXPECT_EQ(created(1.7e28), std::numeric_limits<uint64_t>::max());
  EXPECT_EQ(created(-1.5), 0u);
  EXPECT_EQ(created(2e18), 2'000'000'000'000'000'000u);
}

TEST_F(FlightDumpTest, ARankTwiceOrNoDumpIsRefused) {
  Write(0, {});
  const auto twice = ReadFlightDumps({folder_ + "/rank_0", folder_ + "/rank_0"});
  ASSERT_FALSE(twice);
  EXPECT_NE(twice.error().message.find("give each rank once"), std::string::npos);
  std::ofstream(folder_ + "/rank_3") << "{\"a\": 1}";
  const auto foreign = ReadFlightDump(folder_ + "/rank_3");
  ASSERT_FALSE(foreign);
  EXPECT_NE(foreign.error().message.find("it has no entries"), std::string::npos);
  std::ofstream(folder_ + "/dump") << "{}";
  EXPECT_FALSE(ReadFlightDump(folder_ + "/dump"));
}

}  // namespace
}  // namespace deja::cli
