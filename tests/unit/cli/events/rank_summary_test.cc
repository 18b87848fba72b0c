#include "cli/events/rank_summary.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "format/log/rank_log.h"
#include "tests/unit/cli/written_rank.h"

namespace deja::cli {
namespace {

TEST(RankSummaryTest, TheLastCallNeedNotBeInTheLastBatch) {
  WrittenRank folder;
  folder.Begin();
  for (uint64_t i = 2; i <= 300; ++i) folder.Call(i);
  folder.EndBatch();
  folder.Add(format::Degraded{"payloads were dropped under pressure", 0, 7, 700});
  folder.Add(format::ProcessExit{1, 0});
  folder.EndBatch();
  const RankSummary summary = folder.Summary();
  ASSERT_TRUE(summary.last_call);
  EXPECT_EQ(summary.last_call->Describe(), "AllReduce #300 of comm 0");
  EXPECT_TRUE(summary.open_calls.empty());
  Symbolizer symbolizer;
  EXPECT_EQ(summary.HowItEnded(symbolizer), "exit 1, after AllReduce #300 of comm 0");
}

TEST(RankSummaryTest, ACallThatWasNeverLeftIsFoundBeforeTheLastBatches) {
  WrittenRank folder;
  folder.Begin();
  for (uint64_t i = 2; i <= 6; ++i) folder.Call(i);
  folder.Enter(7);
  folder.EndBatch();
  format::Crash crash;
  crash.signal = 15;
  folder.Add(crash);
  folder.EndBatch();
  folder.Add(format::ProcessExit{143, 0});
  folder.EndBatch();
  const RankSummary summary = folder.Summary();
  ASSERT_EQ(summary.open_calls.size(), 1u);
  EXPECT_EQ(summary.open_calls[0].Describe(), "AllReduce #7 of comm 0");
  ASSERT_TRUE(summary.last_call);
  EXPECT_EQ(summary.last_call->comm_seq, 7u);
}

TEST(RankSummaryTest, AnExceptionIsFoundBeforeOtherNotes) {
  WrittenRank folder;
  folder.Begin();
  folder.Add(
      format::Note{"exception ValueError: no data; train.py:57 in main, train.py:70 in run"});
  folder.EndBatch();
  for (int i = 0; i < 3; ++i) {
    folder.Add(format::Note{"check/garbage phase=start collected=0"});
    folder.EndBatch();
  }
  folder.Add(format::ProcessExit{1, 0});
  folder.EndBatch();
  EXPECT_EQ(folder.Summary().exception, "ValueError: no data at train.py:57 in main");
}

TEST(RankSummaryTest, AnExceptionOfSeveralLinesIsShownInOne) {
  EXPECT_EQ(ExceptionText("exception KeyError: Caught KeyError in DataLoader worker process 0.\n"
                          "Original Traceback:\n  File \"x.py\", line 3\nKeyError: 'a; b'\n; "
                          "data.py:7 in get, train.py:9 in main"),
            "KeyError: Caught KeyError in DataLoader worker process 0. … KeyError: 'a; b' at "
            "data.py:7 in get");
  EXPECT_EQ(ExceptionText("exception ValueError: one; train.py:5 in <module>"),
            "ValueError: one at train.py:5 in <module>");
  EXPECT_EQ(ExceptionText("exception ValueError: \r\n\ttwo\t; train.py:5 in <module>"),
            "ValueError: … two at train.py:5 in <module>");
  EXPECT_EQ(ExceptionText("exception ValueError: no frames\nlast"), "ValueError: no frames … last");
}

TEST(RankSummaryTest, EventsOfTheLogHaveNoNumberedThread) {
  WrittenRank folder;
  folder.Begin();
  const RankSummary summary = folder.Summary();
  EXPECT_EQ(summary.ThreadName(0), "0");
  EXPECT_EQ(summary.ThreadName(7), "thread 7");
  EXPECT_EQ(summary.ThreadName(format::kLogThread), "deja");
}

TEST(RankSummaryTest, TheStepIsNamedHoweverTheRankDied) {
  WrittenRank folder;
  folder.Begin();
  folder.Add(format::Step{3});
  folder.Call(2);
  folder.EndBatch();
  Symbolizer symbolizer;
  RankSummary summary = folder.Summary();
  const std::string where = ", in step 3, after AllReduce #2 of comm 0";
  EXPECT_EQ(summary.HowItEnded(symbolizer), "died without a word (SIGKILL or power loss)" + where);
  summary.oom_kills = 2;
  EXPECT_EQ(summary.HowItEnded(symbolizer),
            "died without a word (SIGKILL: the kernel's OOM killer ended 2 processes of its memory "
            "cgroup)" +
                where);
  summary.oom_kills = 0;
  summary.fate.known = true;
  summary.fate.signal = 9;
  EXPECT_EQ(summary.HowItEnded(symbolizer), "killed by SIGKILL" + where);
  summary.crash = CrashSummary{};
  summary.crash->signal = 6;
  EXPECT_EQ(summary.HowItEnded(symbolizer), "SIGABRT" + where);
  summary.crash.reset();
  summary.exit = format::ProcessExit{1, 0};
  EXPECT_EQ(summary.HowItEnded(symbolizer), "exit 1" + where);
  summary.exit = format::ProcessExit{0, 0};
  EXPECT_EQ(summary.HowItEnded(symbolizer), "exit 0");
}

TEST(RankSummaryTest, FramesOfDejasOwnPythonAndOfPyTorchAreNotTheProgramsPlace) {
  RankSummary summary;
  summary.modules[1] = {"python:as_library:/opt/lib/python/deja/engine.py", ""};
  summary.modules[2] = {"python:all_reduce:/usr/lib/python3/dist-packages/torch/distributed.py",
                        ""};
  summary.modules[3] = {"python:barrier:/home/user/pytorch/torch/distributed/distributed_c10d.py",
                        ""};
  summary.modules[4] = {"python:forward:/shared/torch/nn/modules/linear.py", ""};
  summary.modules[5] = {"python:train_step:/home/user/torch/train.py", ""};
  std::vector<format::StackFrame> frames(5);
  for (uint32_t i = 0; i < 5; ++i) {
    frames[i].module = i + 1;
    frames[i].offset = 10 + i;
  }
  Symbolizer symbolizer;
  const auto place = summary.ProgramFrame(symbolizer, frames, true);
  ASSERT_TRUE(place);
  EXPECT_EQ(place->Describe(), "train.py:14 in train_step");
}

TEST(RankSummaryTest, TheLastChoicesNeedNotBeInTheLastBatch) {
  WrittenRank folder;
  folder.Begin();
  folder.Add(format::AlgorithmChosen{1, 1, 1, "TREE", "LL", 1, 4});
  folder.Add(format::AlgorithmChosen{1, 2, 1, "RING", "LL128", 8, 16});
  folder.Add(format::AlgorithmChosen{7, 2, 1, "RING", "LL", 1, 4});  // of no known communicator
  folder.EndBatch();
  for (uint64_t i = 2; i <= 50; ++i) folder.Call(i);
  folder.EndBatch();
  const RankSummary summary = folder.Summary();
  const CommSummary& comm = summary.comms.at(0);
  ASSERT_EQ(comm.choices.size(), 1u);
  const ChoiceSummary& choice = comm.choices.at(1);
  EXPECT_EQ(choice.call, "AllReduce");
  EXPECT_EQ(choice.algorithm, "RING");
  EXPECT_EQ(choice.protocol, "LL128");
  EXPECT_EQ(choice.channels, 8u);
}

TEST(RankSummaryTest, ACallThatWasLeftInALaterBatchIsNotOpen) {
  WrittenRank folder;
  folder.Begin();
  const uint64_t enter = folder.Enter(2);
  folder.EndBatch();
  format::CallLeave leave;
  leave.enter_seq = enter;
  folder.Add(leave);
  folder.EndBatch();
  folder.Add(format::ProcessExit{0, 0});
  folder.EndBatch();
  const RankSummary summary = folder.Summary();
  EXPECT_TRUE(summary.open_calls.empty());
  ASSERT_TRUE(summary.last_call);
  EXPECT_EQ(summary.last_call->comm_seq, 2u);
}

TEST(RankSummary, CallsHaveNamesThatProgramsKnow) {
  RankSummary summary;
  summary.api_names = {{1, "ncclAllReduce"}, {2, "_ZNSt13random_device9_M_getvalEv"}, {3, "time"}};
  EXPECT_EQ(summary.ApiName(1), "AllReduce");
  EXPECT_EQ(summary.ApiName(2), "random_device");
  EXPECT_EQ(summary.ApiName(3), "time");
}

}  // namespace
}  // namespace deja::cli
