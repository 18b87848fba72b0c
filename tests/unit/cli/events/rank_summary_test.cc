#include "cli/rank_story.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/unit/cli/written_rank.h"

namespace deja::cli {
namespace {

TEST(RankStoryTest, TheLastCallNeedNotBeInTheLastBatch) {
  WrittenRank folder;
  folder.Begin();
  for (uint64_t i = 2; i <= 300; ++i) folder.Call(i);
  folder.EndBatch();
  folder.Add(format::Degraded{"payloads were dropped under pressure", 0, 7, 700});
  folder.Add(format::ProcessExit{1, 0});
  folder.EndBatch();
  const RankStory story = folder.Story();
  ASSERT_TRUE(story.last_call);
  EXPECT_EQ(story.last_call->Describe(), "AllReduce #300 of comm 0");
  EXPECT_TRUE(story.open_calls.empty());
  Symbolizer symbolizer;
  EXPECT_EQ(story.HowItEnded(symbolizer), "exit 1, after AllReduce #300 of comm 0");
}

TEST(RankStoryTest, ACallThatWasNeverLeftIsFoundBehindBatchesOfTheEnd) {
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
  const RankStory story = folder.Story();
  ASSERT_EQ(story.open_calls.size(), 1u);
  EXPECT_EQ(story.open_calls[0].Describe(), "AllReduce #7 of comm 0");
  ASSERT_TRUE(story.last_call);
  EXPECT_EQ(story.last_call->comm_seq, 7u);
}

TEST(RankStoryTest, TheStepIsNamedHoweverTheRankDied) {
  WrittenRank folder;
  folder.Begin();
  folder.Add(format::Step{3});
  folder.Call(2);
  folder.EndBatch();
  Symbolizer symbolizer;
  RankStory story = folder.Story();
  const std::string where = ", in step 3, after AllReduce #2 of comm 0";
  EXPECT_EQ(story.HowItEnded(symbolizer), "died without a word (SIGKILL or power loss)" + where);
  story.oom_kills = 2;
  EXPECT_EQ(story.HowItEnded(symbolizer),
            "died without a word (SIGKILL: the kernel's OOM killer ended 2 processes of its memory "
            "cgroup)" +
                where);
  story.oom_kills = 0;
  story.fate.known = true;
  story.fate.signal = 9;
  EXPECT_EQ(story.HowItEnded(symbolizer), "killed by SIGKILL" + where);
  story.crash = CrashStory{};
  story.crash->signal = 6;
  EXPECT_EQ(story.HowItEnded(symbolizer), "SIGABRT" + where);
  story.crash.reset();
  story.exit = format::ProcessExit{1, 0};
  EXPECT_EQ(story.HowItEnded(symbolizer), "exit 1" + where);
  story.exit = format::ProcessExit{0, 0};
  EXPECT_EQ(story.HowItEnded(symbolizer), "exit 0");
}

TEST(RankStoryTest, FramesOfDejasOwnPythonAndOfPyTorchAreNotTheProgramsPlace) {
  RankStory story;
  story.modules[1] = {"python:as_library:/opt/lib/python/deja/engine.py", ""};
  story.modules[2] = {"python:all_reduce:/usr/lib/python3/dist-packages/torch/distributed.py", ""};
  story.modules[3] = {"python:barrier:/home/user/pytorch/torch/distributed/distributed_c10d.py",
                      ""};
  story.modules[4] = {"python:forward:/shared/torch/nn/modules/linear.py", ""};
  story.modules[5] = {"python:train_step:/home/user/torch/train.py", ""};
  std::vector<format::StackFrame> frames(5);
  for (uint32_t i = 0; i < 5; ++i) {
    frames[i].module = i + 1;
    frames[i].offset = 10 + i;
  }
  Symbolizer symbolizer;
  const auto place = story.ProgramFrame(symbolizer, frames, true);
  ASSERT_TRUE(place);
  EXPECT_EQ(place->Describe(), "train.py:14 in train_step");
}

TEST(RankStoryTest, TheLastChoicesNeedNotBeInTheLastBatch) {
  WrittenRank folder;
  folder.Begin();
  folder.Add(format::AlgorithmChosen{1, 1, 1, "TREE", "LL", 1, 4});
  folder.Add(format::AlgorithmChosen{1, 2, 1, "RING", "LL128", 8, 16});
  folder.Add(format::AlgorithmChosen{7, 2, 1, "RING", "LL", 1, 4});  // of no known communicator
  folder.EndBatch();
  for (uint64_t i = 2; i <= 50; ++i) folder.Call(i);
  folder.EndBatch();
  const RankStory story = folder.Story();
  const CommStory& comm = story.comms.at(0);
  ASSERT_EQ(comm.choices.size(), 1u);
  const ChoiceStory& choice = comm.choices.at(1);
  EXPECT_EQ(choice.call, "AllReduce");
  EXPECT_EQ(choice.algorithm, "RING");
  EXPECT_EQ(choice.protocol, "LL128");
  EXPECT_EQ(choice.channels, 8u);
}

TEST(RankStoryTest, ACallThatWasLeftInALaterBatchIsNotOpen) {
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
  const RankStory story = folder.Story();
  EXPECT_TRUE(story.open_calls.empty());
  ASSERT_TRUE(story.last_call);
  EXPECT_EQ(story.last_call->comm_seq, 2u);
}

}  // namespace
}  // namespace deja::cli
