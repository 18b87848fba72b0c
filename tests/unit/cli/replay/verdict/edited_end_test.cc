#include "cli/replay/verdict/edited_end.h"

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <csignal>

namespace deja::cli {
namespace {

constexpr const char* kStartLine = R"({"kind":"start","pid":7})";
constexpr const char* kExceptionLine =
    R"({"kind":"exception","text":"exception RuntimeError: loss is nan in step 8; train.py:40 in main"})";

std::vector<ReportLine> ReportedLines(std::initializer_list<const char*> texts) {
  std::vector<ReportLine> lines;
  for (const char* text : texts) {
    std::string problem;
    lines.push_back(ParseReportLine(text, problem));
    EXPECT_EQ(problem, "") << text;
  }
  return lines;
}

RankSummary FailedRun(const std::string& exception) {
  RankSummary summary;
  summary.exit = format::ProcessExit{1, 0};
  summary.exception = exception;
  return summary;
}

RankSummary CrashedRun(uint32_t signal) {
  RankSummary summary;
  summary.fate.known = true;
  summary.fate.signal = signal;
  return summary;
}

RecordedFailure FailureOf(const RankSummary& recorded, std::initializer_list<const char*> lines,
                          int status) {
  return EndOfEdited(recorded, ReportedLines(lines), status).failure;
}

TEST(EditedEnd, TheRecordedExceptionComesAgainOrAnotherOrNone) {
  const RankSummary recorded =
      FailedRun("RuntimeError: loss is nan in step 7 at train.py:35 in main");
  const EditedEnd again =
      EndOfEdited(recorded, ReportedLines({kStartLine, kExceptionLine}), W_EXITCODE(1, 0));
  EXPECT_EQ(again.failure, RecordedFailure::kAgain);
  EXPECT_EQ(again.live, "exit 1, RuntimeError: loss is nan in step 8 at train.py:40 in main");
  EXPECT_EQ(DescribeEdited(again, "exit 1"),
            "the recorded failure (exit 1) comes again: " + again.live);
  EXPECT_EQ(FailureOf(recorded, {kStartLine}, W_EXITCODE(0, 0)), RecordedFailure::kGone);
  EXPECT_EQ(FailureOf(recorded, {kStartLine}, W_EXITCODE(1, 0)), RecordedFailure::kOther)
      << "without an exception it is another failure";
  EXPECT_EQ(FailureOf(FailedRun("NameError: x at train.py:3 in main"), {kStartLine, kExceptionLine},
                      W_EXITCODE(1, 0)),
            RecordedFailure::kOther);
  EXPECT_EQ(FailureOf(recorded, {kStartLine, kExceptionLine}, W_EXITCODE(2, 0)),
            RecordedFailure::kOther);
}

TEST(EditedEnd, SignalsAreComparedByNumber) {
  EXPECT_EQ(FailureOf(CrashedRun(SIGSEGV), {kStartLine}, SIGSEGV), RecordedFailure::kAgain);
  EXPECT_EQ(FailureOf(CrashedRun(SIGSEGV), {kStartLine}, SIGABRT), RecordedFailure::kOther);
  EXPECT_EQ(FailureOf(CrashedRun(SIGSEGV), {kStartLine}, W_EXITCODE(0, 0)), RecordedFailure::kGone);
  EXPECT_EQ(FailureOf(CrashedRun(SIGSEGV), {kStartLine}, W_EXITCODE(1, 0)),
            RecordedFailure::kOther);
}

TEST(EditedEnd, ARunThatEndedWellHasNoFailure) {
  RankSummary well;
  well.exit = format::ProcessExit{0, 0};
  EXPECT_EQ(FailureOf(well, {kStartLine}, W_EXITCODE(0, 0)), RecordedFailure::kNone);
  EXPECT_EQ(FailureOf(well, {kStartLine}, W_EXITCODE(1, 0)), RecordedFailure::kOther);
}

TEST(EditedEnd, AProgramThatGoesOnPastTheEndHasPassedTheFailure) {
  constexpr const char* kPast =
      R"({"kind":"end","how":"stalled","text":"it waits","parked":[{"thread":"0","api":"AllReduce","comm":0,"comm_seq":98,"entered":false}]})";
  constexpr const char* kHangs =
      R"({"kind":"end","how":"reached","text":"the end","parked":[{"thread":"0","api":"AllReduce","comm":0,"comm_seq":97,"entered":true}]})";
  const EditedEnd past = EndOfEdited(CrashedRun(SIGSEGV), ReportedLines({kStartLine, kPast}), 0);
  EXPECT_EQ(past.failure, RecordedFailure::kGone);
  EXPECT_EQ(past.live, "it goes on to AllReduce, after the end of the recording");
  EXPECT_EQ(FailureOf(CrashedRun(SIGINT), {kStartLine, kHangs}, 0), RecordedFailure::kAgain);
}

TEST(EditedEnd, CallsThatTheRecordingDoesNotHaveMakeTheEndVoid) {
  constexpr const char* kExtra =
      R"({"kind":"divergence","divergence":"extra-call","text":"more","thread":"0","api":"AllReduce","comm":0,"comm_seq":98,"recorded_stack":[],"live_stack":[]})";
  const RankSummary recorded = FailedRun("RuntimeError: loss is nan at train.py:35 in main");
  const EditedEnd end =
      EndOfEdited(recorded, ReportedLines({kStartLine, kExtra, kExceptionLine}), W_EXITCODE(1, 0));
  EXPECT_EQ(end.failure, RecordedFailure::kGone);
  EXPECT_EQ(end.live, "it goes on to AllReduce #98 of comm 0, after the end of the recording");
  RankSummary well;
  well.exit = format::ProcessExit{0, 0};
  EXPECT_EQ(FailureOf(well, {kStartLine, kExtra}, W_EXITCODE(0, 0)), RecordedFailure::kUnknown);
  RankSummary elsewhere = CrashedRun(SIGSEGV);
  elsewhere.crash.emplace();
  elsewhere.crash->thread = "0.1";
  EXPECT_EQ(FailureOf(elsewhere, {kStartLine, kExtra}, SIGSEGV), RecordedFailure::kAgain);
}

TEST(EditedEnd, AReplayThatCannotGoOnProvesNothing) {
  constexpr const char* kFailed = R"({"kind":"failed","message":"contents are not kept"})";
  const EditedEnd end =
      EndOfEdited(CrashedRun(SIGSEGV), ReportedLines({kStartLine, kFailed}), W_EXITCODE(1, 0));
  EXPECT_EQ(end.failure, RecordedFailure::kUnknown);
  EXPECT_EQ(DescribeEdited(end, "SIGSEGV"),
            "whether the recorded end (SIGSEGV) comes is not known: contents are not kept");
  EXPECT_EQ(FailureOf(CrashedRun(SIGSEGV), {}, W_EXITCODE(0, 0)), RecordedFailure::kUnknown);
}

TEST(EditedEnd, TheFirstEffectIsAnOperations) {
  const std::vector<ReportLine> lines = ReportedLines(
      {kStartLine,
       R"({"kind":"divergence","divergence":"snapshot","text":"loss","thread":"0","api":"deja_tensor","recorded_stack":[],"live_stack":[]})",
       R"({"kind":"divergence","divergence":"input","text":"AllReduce #97","thread":"0","api":"AllReduce","comm":0,"comm_seq":97,"recorded_stack":[],"live_stack":[]})"});
  const DivergenceLine* effect = FirstEffect(lines);
  ASSERT_NE(effect, nullptr);
  EXPECT_EQ(effect->text, "AllReduce #97");
  EXPECT_EQ(FirstEffect(ReportedLines({kStartLine})), nullptr);
}

}  // namespace
}  // namespace deja::cli
