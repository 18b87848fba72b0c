// The parts of a report that are gathered of the recordings: numbers over steps, steps,
// differences.
#include "cli/report/report_data.h"

#include <gtest/gtest.h>

#include <cmath>

#include "api/nccl_table.h"
#include "check/evidence/summarize.h"
#include "cli/report/surroundings_table.h"
#include "tests/unit/check/made_job.h"
#include "tests/unit/cli/written_rank.h"

namespace deja::cli {
namespace {

class NoPlaces : public check::PlaceFinder {
 public:
  check::Site Find(const std::vector<check::CodeAddress>&, bool) override { return {}; }
};

format::Tensor TensorOf(uint64_t count, double sum, double sum_squares, uint64_t nans) {
  format::Tensor tensor;
  tensor.dtype = 7;
  tensor.count = count;
  tensor.hash.bytes[0] = 1;
  tensor.stats.sum = sum;
  tensor.stats.sum_squares = sum_squares;
  tensor.stats.nan_count = nans;
  return tensor;
}

void AddAllReduce(WrittenRank& rank, uint64_t seq, const format::Tensor& tensor) {
  format::CallEnter enter;
  enter.api = static_cast<uint32_t>(api::NcclApi::ncclAllReduce);
  enter.comm = 1;
  enter.comm_seq = seq;
  for (const uint64_t arg :
       {uint64_t{1}, uint64_t{2}, tensor.count, uint64_t{7}, uint64_t{0}, uint64_t{1}, uint64_t{0}})
    enter.args.push_back(arg);
  enter.inputs.push_back(TensorOf(tensor.count, -1, 1, 0));
  format::CallLeave leave;
  leave.enter_seq = rank.Add(enter);
  format::CallResults results;
  results.comm = 1;
  results.comm_seq = seq;
  results.outputs.push_back(tensor);
  rank.Add(results);
  rank.Add(leave);
}

TEST(NumberSeries, FollowsValuesAndNormsOverSteps) {
  WrittenRank rank;
  format::CommCreated created;
  created.comm = 1;
  created.nranks = 2;
  rank.Add(created);
  for (uint64_t step = 0; step < 3; ++step) {
    rank.Add(format::Step{step});
    AddAllReduce(rank, 2 * step + 1, TensorOf(1, 5.0 - static_cast<double>(step), 1, 0));
    AddAllReduce(rank, 2 * step + 2, TensorOf(100, 0, 16, step == 2 ? 3 : 0));
  }
  rank.EndBatch();
  const format::RankReader& reader = rank.Reader();
  NoPlaces places;
  check::RankSummary summary = check::Summarize(reader, places, {});
  summary.has_digests = true;
  const auto series = ReadNumberSeries(reader, summary, {});
  ASSERT_EQ(series.size(), 2u);
  EXPECT_EQ(series[0].title, "AllReduce float32[1] sum");
  EXPECT_TRUE(series[0].is_scalar);
  EXPECT_TRUE(series[0].has_steps);
  ASSERT_EQ(series[0].points.size(), 3u);
  EXPECT_EQ(series[0].points[2].x, 2u);
  EXPECT_EQ(series[0].points[2].value, 3.0);
  ASSERT_EQ(series[1].points.size(), 3u);
  EXPECT_EQ(series[1].points[0].value, 4.0);
  EXPECT_TRUE(series[1].points[2].is_nan);
  // Thinned out, but not of NaNs.
  EXPECT_EQ(ReadNumberSeries(reader, summary, {.series = 2, .points = 1})[1].points.size(), 2u);

  const RankFacts facts = ReadRankFacts(reader);
  ASSERT_EQ(facts.steps.size(), 3u);
  EXPECT_EQ(facts.steps[1].first, 1u);
}

TEST(JobSteps, KnowTheLastRank) {
  RankFacts early;
  early.steps = {{0, 100}, {1, 200}};
  RankFacts late;
  late.steps = {{0, 130}, {1, 190}, {1, 500}};
  const auto steps = StepsOf({early, late});
  ASSERT_EQ(steps.size(), 2u);
  EXPECT_EQ(steps[0].first_ns, 100u);
  EXPECT_EQ(steps[0].last_ns, 130u);
  EXPECT_EQ(steps[0].last_rank, 1u);
  EXPECT_EQ(steps[1].last_rank, 0u);
  EXPECT_EQ(steps[1].ranks, 2u);
}

TEST(SurroundingsTable, HasOnlyWhatDiffers) {
  check::MadeJob made(3);
  made[0].surroundings = {{"kernel", "6"}, {"environment NCCL_PROTO", "LL"}};
  made[1].surroundings = {{"kernel", "6"}, {"environment NCCL_PROTO", "Simple"}};
  made[2].surroundings = {{"kernel", "6"}};
  const auto differences = DifferencesOf(made.Made());
  ASSERT_EQ(differences.size(), 1u);
  EXPECT_EQ(differences[0].name, "environment NCCL_PROTO");
  ASSERT_EQ(differences[0].values.size(), 3u);
  EXPECT_EQ(differences[0].values[2].value, "");
  EXPECT_EQ(differences[0].values[2].ranks, std::vector<uint32_t>{2});
}

TEST(ReportData, NamesPdbForTheRankThatAnExceptionEnded) {
  check::MadeJob made(2);
  made.All(check::AllReduce(8), "a.py", 1);
  for (const bool failed : {false, true}) {
    if (failed) made[1].end.exception = "ValueError: bad";
    const check::Job job = made.Made();
    const auto replay = ReportData({}, job, check::Check(job), {})["replay"];
    std::vector<std::string> commands;
    for (const auto& row : replay) commands.push_back(row[0]);
    const std::string rank = std::string("deja replay RUN --rank ") + (failed ? "1" : "0");
    EXPECT_EQ(commands[0], rank);
    EXPECT_EQ(commands[1], rank + (failed ? " --pdb" : " --gdb"));
  }
}

TEST(ReportData, CountsNansByStep) {
  check::MadeJob made(2);
  for (uint64_t step = 0; step < 3; ++step) {
    made.Step(0, step);
    made.Step(1, step);
    const auto flags =
        static_cast<uint8_t>(step == 1 ? check::kDone | check::kNanOut : check::kDone);
    made.All(check::AllReduce(8), "a.py", 1, {.flags = flags});
  }
  const check::Job job = made.Made();
  const auto data = ReportData({}, job, check::Check(job), {});
  EXPECT_EQ(data["bad_numbers"]["nans"], (nlohmann::json{{0, 0}, {1, 2}, {2, 0}}));
  EXPECT_TRUE(data["bad_numbers"]["infinities"].empty());
  EXPECT_EQ(data["verdict"]["ranks"], 2);
}

}  // namespace
}  // namespace deja::cli
