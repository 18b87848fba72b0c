// Two recordings: of one job twice, and of a whole run and a resumed one.
#include <gtest/gtest.h>

#include "check/compare.h"
#include "tests/unit/check/made_job.h"

namespace deja::check {
namespace {

OptimizerSeen Moment(uint64_t step, uint64_t weights, uint64_t state) {
  OptimizerSeen seen;
  seen.step = step;
  seen.kind = "Adam";
  seen.learning_rate = "0.1";
  seen.weights = weights;
  seen.gradients = weights * 10;
  seen.state = state;
  seen.time_ns = 1000 * kSecond + step * 10;
  return seen;
}

BatchSeen Batch(uint64_t number, uint64_t digest, uint64_t before_step) {
  BatchSeen batch;
  batch.batch = number;
  batch.digest = digest;
  batch.time_ns = 1000 * kSecond + before_step * 10 - 5;
  return batch;
}

MadeJob Whole() {
  MadeJob made(1);
  for (uint64_t step = 1; step <= 4; ++step) {
    made[0].seen.optimizers.push_back(Moment(step, 100 + step, 200 + step));
    made[0].seen.batches.push_back(Batch(step, 300 + step, step));
  }
  return made;
}

MadeJob Resumed(uint64_t state, uint64_t batch) {
  MadeJob made(1);
  made[0].seen.optimizers = {Moment(1, 103, state), Moment(2, 104, 204)};
  made[0].seen.batches = {Batch(1, batch, 1), Batch(2, 304, 2)};
  return made;
}

TEST(ResumeTest, ARunThatGoesOn) {
  EXPECT_TRUE(CompareResumed(Whole().Made(), Resumed(203, 303).Made()).findings.empty());
}

TEST(ResumeTest, TheOptimizerHasForgotten) {
  const Report report = CompareResumed(Whole().Made(), Resumed(0, 303).Made());
  const Finding& finding = Only(report);
  EXPECT_EQ(finding.kind, Kind::kResume);
  EXPECT_EQ(finding.step, 3u);
  EXPECT_NE(finding.sentence.find("the state of Adam"), std::string::npos);
}

TEST(ResumeTest, TheDataBeginAgain) {
  const Report report = CompareResumed(Whole().Made(), Resumed(203, 301).Made());
  EXPECT_NE(Only(report).sentence.find("the whole run read before step 1"), std::string::npos)
      << Only(report).sentence;
}

GeneratorSeen Generator(uint64_t digest, uint64_t before_step) {
  GeneratorSeen seen;
  seen.name = "rng/numpy";
  seen.digest = digest;
  seen.time_ns = 1000 * kSecond + before_step * 10 - 5;
  return seen;
}

TEST(ResumeTest, AGeneratorCountsIfARunDrawsFromIt) {
  for (const uint64_t last : {400, 401}) {
    MadeJob whole = Whole();
    whole[0].seen.generators = {Generator(400, 3), Generator(last, 4)};
    MadeJob resumed = Resumed(203, 303);
    resumed[0].seen.generators = {Generator(500, 1), Generator(500, 2)};
    const Report report = CompareResumed(whole.Made(), resumed.Made());
    EXPECT_EQ(report.findings.size(), last == 400 ? 0u : 1u);
  }
}

TEST(ResumeTest, ParametersOfNoStep) {
  MadeJob made(1);
  made[0].seen.optimizers = {Moment(1, 999, 0)};
  const Report report = CompareResumed(Whole().Made(), made.Made());
  EXPECT_NE(Only(report).sentence.find("at none of its 4 steps"), std::string::npos);
}

TEST(ResumeTest, NothingToAlignBy) {
  MadeJob made(1);
  const Report report = CompareResumed(Whole().Made(), made.Made());
  EXPECT_TRUE(report.findings.empty());
  EXPECT_EQ(report.notes.size(), 1u);
}

TEST(CompareTest, AGeneratorCountsIfARunDrawsFromIt) {
  for (const uint64_t last : {400, 401}) {
    MadeJob first(1);
    first[0].seen.generators = {Generator(400, 1), Generator(last, 2)};
    MadeJob second(1);
    second[0].seen.generators = {Generator(500, 1), Generator(500, 2)};
    const Report report = CompareRuns(first.Made(), second.Made());
    EXPECT_EQ(report.findings.size(), last == 400 ? 0u : 1u);
  }
}

MadeJob OneRun(uint64_t folder, uint64_t result) {
  MadeJob made(2);
  made.All(AllReduce(8), "train.py", 5, {1, 2});
  InputSeen input;
  input.kind = InputKind::kFolder;
  input.name = "/data";
  input.value = folder;
  input.shown = "entries";
  input.time_ns = made[1].last_time_ns;
  made[1].seen.inputs = {input};
  made.Wait(5);
  made.Do(0, AllReduce(8), "train.py", 5, {3, 4});
  made.Do(1, AllReduce(8), "train.py", 5, {result, 4});
  return made;
}

TEST(CompareTest, RunsThatAreTheSame) {
  const Report report = CompareRuns(OneRun(7, 3).Made(), OneRun(7, 3).Made());
  EXPECT_TRUE(report.findings.empty());
}

TEST(CompareTest, TheFirstNumberAndTheInputBeforeIt) {
  const Report report = CompareRuns(OneRun(7, 3).Made(), OneRun(8, 9).Made());
  const Finding& finding = Only(report);
  EXPECT_EQ(finding.kind, Kind::kInput);
  EXPECT_EQ(finding.blamed, Ranks{1});
  EXPECT_NE(finding.sentence.find("in folder /data differs"), std::string::npos)
      << finding.sentence;
}

TEST(CompareTest, NothingDiffersBefore) {
  const Report report = CompareRuns(OneRun(7, 3).Made(), OneRun(7, 9).Made());
  EXPECT_NE(Only(report).sentence.find("no input that is recorded differs before it"),
            std::string::npos);
}

}  // namespace
}  // namespace deja::check
