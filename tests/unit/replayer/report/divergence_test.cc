#include "replayer/report/divergence.h"

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "format/scratch/scratch_names.h"
#include "tests/support/temp_dir.h"

namespace deja::replayer {
namespace {

constexpr uint32_t kFloat32 = 7;

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
  const TempDir folder;
  Report report;
  report.Open(folder.path());
  divergence.WriteTo(report);
  std::ostringstream read;
  read << std::ifstream(folder.path() + format::kReportFile).rdbuf();
  const std::string text = read.str();
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
