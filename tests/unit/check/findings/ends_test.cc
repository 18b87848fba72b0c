// missing and left-early, cycle and group: ranks that do not come.
#include <gtest/gtest.h>

#include "tests/unit/check/made_job.h"

namespace deja::check {
namespace {

constexpr With kInside = {0, 0, 0, 0};
constexpr With kFailedCall = {0, 0, kDone | kFailed, 0};

MadeJob Trained(uint32_t ranks) {
  MadeJob made(ranks);
  for (int i = 0; i < 5; ++i) made.All(AllReduce(100), "train.py", 55);
  return made;
}

TEST(EndsTest, ARankThatNeverCameWhileOthersWaited) {
  MadeJob made = Trained(4);
  for (const uint32_t rank : {0, 1, 3}) made.Do(rank, AllReduce(100), "train.py", 55, kInside);
  made.Wait(20 * kSecond);
  made.KillAll();
  const Report report = made.Checked();
  const Finding& finding = Only(report);
  EXPECT_EQ(finding.kind, Kind::kOutside);
  EXPECT_EQ(finding.blamed, Ranks{2});
  EXPECT_EQ(finding.waiting, (Ranks{0, 1, 3}));
  EXPECT_EQ(finding.number, 6u);
  EXPECT_NE(finding.sentence.find("its last was AllReduce float32[100] sum #5 of comm 0; ended "
                                  "from outside by SIGTERM"),
            std::string::npos)
      << finding.sentence;
}

// The kernel kills a rank for lack of memory, and the library tells the others.
TEST(EndsTest, AKilledRankLeavesTheCommunicatorAndTheOthersGetAnError) {
  for (const bool inside : {false, true}) {
    MadeJob made = Trained(3);
    for (const uint32_t rank : {0, 1}) made.Do(rank, AllReduce(100), "train.py", 55, kFailedCall);
    if (inside) made.Do(2, AllReduce(100), "train.py", 55, kInside);
    made.EndBy(2, EndKind::kEnded, 0, SIGKILL);
    for (const uint32_t rank : {0, 1}) made.EndBy(rank, EndKind::kExit, 0);
    const Report report = made.Checked();
    EXPECT_EQ(Only(report).kind, Kind::kLeftEarly);
    EXPECT_EQ(Only(report).blamed, Ranks{2});
  }
}

TEST(EndsTest, ARankThatAnExceptionEndedIsReplayedInPdb) {
  for (const std::string exception : {"", "ValueError: bad"}) {
    MadeJob made = Trained(3);
    for (const uint32_t rank : {0, 1}) made.Do(rank, AllReduce(100), "train.py", 55, kFailedCall);
    made.EndBy(2, EndKind::kExit, 1);
    made[2].end.exception = exception;
    for (const uint32_t rank : {0, 1}) made.EndBy(rank, EndKind::kExit, 1);
    const Report report = made.Checked();
    EXPECT_EQ(Only(report).next.back(),
              exception.empty() ? "replay RUN --rank 2 --gdb" : "replay RUN --rank 2 --pdb");
  }
}

// A user ends a healthy job: some ranks are in a call, the others are on their way to it.
TEST(EndsTest, AJobThatIsEndedDoesNotHang) {
  MadeJob made = Trained(4);
  made.Do(1, AllReduce(100), "train.py", 55, kInside);
  made.KillAll();
  const Report report = made.Checked();
  EXPECT_TRUE(report.findings.empty());
  ASSERT_EQ(report.notes.size(), 1u);
  EXPECT_NE(report.notes[0].find("ranks 0,2-3 had not entered"), std::string::npos);
}

TEST(EndsTest, ARankThatIsOftenLateIsNotMissing) {
  MadeJob made(2);
  for (int i = 0; i < 5; ++i) {
    made.All(AllReduce(100), "train.py", 55);
    made.Wait(10 * kSecond);
  }
  made.Do(1, AllReduce(100), "train.py", 55, kInside);
  made.Wait(20 * kSecond);
  made.KillAll();
  EXPECT_TRUE(made.Checked().findings.empty());
}

TEST(EndsTest, ARankThatCrashed) {
  MadeJob made = Trained(4);
  made.EndBy(2, EndKind::kSignal, 0, SIGSEGV);
  made[2].sites.push_back({{"sampler.cc", 157, "Next"}});
  made[2].end.site = static_cast<uint32_t>(made[2].sites.size() - 1);
  for (const uint32_t rank : {0, 1, 3}) {
    made.Do(rank, AllReduce(100), "train.py", 55, kFailedCall);
    made.EndBy(rank, EndKind::kExit, 1);
  }
  const Report report = made.Checked();
  const Finding& finding = Only(report);
  EXPECT_EQ(finding.kind, Kind::kLeftEarly);
  EXPECT_EQ(finding.blamed, Ranks{2});
  EXPECT_NE(finding.sentence.find("SIGSEGV at sampler.cc:157 in Next"), std::string::npos)
      << finding.sentence;
}

// Another thread of it crashed while its own call was under way.
TEST(EndsTest, ARankThatCrashedInsideOfACall) {
  MadeJob made = Trained(3);
  made.Do(1, AllReduce(100), "train.py", 55, kInside);
  made.EndBy(1, EndKind::kSignal, 0, SIGSEGV);
  for (const uint32_t rank : {0, 2}) {
    made.Do(rank, AllReduce(100), "train.py", 55, kFailedCall);
    made.EndBy(rank, EndKind::kExit, 1);
  }
  const Report report = made.Checked();
  EXPECT_EQ(Only(report).kind, Kind::kLeftEarly);
  EXPECT_EQ(Only(report).blamed, Ranks{1});
  EXPECT_EQ(Only(report).number, 6u);
}

TEST(EndsTest, ARankThatLeftWithAGoodExit) {
  MadeJob made = Trained(2);
  made.EndBy(0, EndKind::kExit, 0);
  made.Do(1, AllReduce(100), "train.py", 55, kFailedCall);
  made.EndBy(1, EndKind::kExit, 1);
  const Report report = made.Checked();
  EXPECT_EQ(Only(report).kind, Kind::kLeftEarly);
  EXPECT_EQ(Only(report).blamed, Ranks{0});
}

// A communicator that is shrunk because one rank does not come.
TEST(EndsTest, AJobThatGoesOnWithoutARankAndEndsWellIsANote) {
  MadeJob made = Trained(3);
  for (const uint32_t rank : {0, 2}) made.Do(rank, AllReduce(100), "train.py", 55, kFailedCall);
  const Report report = made.Checked();
  EXPECT_TRUE(report.findings.empty());
  ASSERT_EQ(report.notes.size(), 1u);
  EXPECT_NE(report.notes[0].find("rank 1 did not enter"), std::string::npos);
}

TEST(EndsTest, RanksThatAllFailAloneAreNoFinding) {
  MadeJob made = Trained(4);
  for (uint32_t rank = 0; rank < 4; ++rank) made.EndBy(rank, EndKind::kExit, 1);
  EXPECT_TRUE(made.Checked().findings.empty());
}

TEST(EndsTest, TwoCommunicatorsInAnotherOrderAreACycle) {
  MadeJob made(2);
  made.AddComm(0x7, {0, 1});
  for (int i = 0; i < 3; ++i) made.All(AllReduce(8), "a.py", 1);
  made.Do(0, AllReduce(8), "a.py", 5, kInside, 0);
  made.Do(1, AllReduce(8), "b.py", 6, kInside, 1);
  made.Wait(10 * kSecond);
  made.KillAll();
  const Report report = made.Checked();
  const Finding& finding = Only(report);
  EXPECT_EQ(finding.kind, Kind::kCycle);
  EXPECT_EQ(finding.blamed, (Ranks{0, 1}));
  EXPECT_EQ(finding.consequences.size(), 2u);
}

TEST(EndsTest, RanksThatMakeACommunicatorNameTheMissingRank) {
  MadeJob made = Trained(3);
  for (const uint32_t rank : {0, 1}) {
    OpenCall call;
    call.name = "CommInitRank";
    call.time_ns = made[rank].last_time_ns;
    call.makes_communicator = true;
    call.nranks = 3;
    made[rank].open.push_back(call);
  }
  made.Wait(10 * kSecond);
  made.KillAll();
  const Report report = made.Checked();
  EXPECT_EQ(Only(report).kind, Kind::kMissing);
  EXPECT_EQ(Only(report).blamed, Ranks{2});
}

TEST(EndsTest, RanksThatMakeDifferentCommunicators) {
  MadeJob made = Trained(4);
  for (uint32_t rank = 0; rank < 4; ++rank) {
    made[rank].sites.push_back({{"groups.py", rank == 3 ? 12 : 11, "make"}});
    OpenCall call;
    call.name = "new_group";
    call.time_ns = made[rank].last_time_ns;
    call.makes_communicator = true;
    call.site = static_cast<uint32_t>(made[rank].sites.size() - 1);
    call.nranks = 2;
    made[rank].open.push_back(call);
  }
  made.Wait(10 * kSecond);
  made.KillAll();
  const Report report = made.Checked();
  EXPECT_EQ(Only(report).kind, Kind::kGroup);
  EXPECT_EQ(Only(report).blamed, Ranks{3});
}

// Rank `rank` is making a communicator of `members`, and never comes out of that.
void Make(MadeJob& made, uint32_t rank, const std::vector<uint64_t>& members) {
  OpenCall call;
  call.name = "new_group";
  call.time_ns = made[rank].last_time_ns;
  call.makes_communicator = true;
  call.nranks = members.size();
  call.members = members;
  made[rank].open.push_back(call);
}

TEST(EndsTest, MembersThatNeverCome) {
  MadeJob made = Trained(4);
  Make(made, 0, {0, 2});
  made.Wait(10 * kSecond);
  made.KillAll();
  const Report report = made.Checked();
  EXPECT_EQ(Only(report).kind, Kind::kMissing);
  EXPECT_EQ(Only(report).blamed, Ranks{2});
  EXPECT_EQ(Only(report).waiting, Ranks{0});
  EXPECT_NE(Only(report).sentence.find("ranks 0,2"), std::string::npos) << Only(report).sentence;
}

TEST(EndsTest, MembersThatMakeAnotherOne) {
  MadeJob made = Trained(4);
  Make(made, 0, {0, 2});
  Make(made, 2, {2, 3});
  Make(made, 3, {2, 3});
  made.Wait(10 * kSecond);
  made.KillAll();
  const Report report = made.Checked();
  EXPECT_EQ(Only(report).kind, Kind::kGroup);
  EXPECT_EQ(Only(report).blamed, Ranks{2});
}

TEST(EndsTest, PartsOfTheJobThatAreMakingTheirsAreANote) {
  MadeJob made = Trained(4);
  for (const uint32_t rank : {0, 1}) Make(made, rank, {0, 1});
  for (const uint32_t rank : {2, 3}) Make(made, rank, {2, 3});
  made.Wait(10 * kSecond);
  made.KillAll();
  const Report report = made.Checked();
  EXPECT_TRUE(report.findings.empty());
  ASSERT_EQ(report.notes.size(), 1u);
  EXPECT_NE(report.notes[0].find("making a communicator"), std::string::npos) << report.notes[0];
}

TEST(EndsTest, RanksThatClaimOnePlace) {
  MadeJob made = Trained(3);
  for (const uint32_t rank : {0, 1}) {
    OpenCall call;
    call.name = "new_group";
    call.time_ns = made[rank].last_time_ns;
    call.makes_communicator = true;
    call.nranks = 2;
    call.place = 0;
    call.identity = 77;
    made[rank].open.push_back(call);
  }
  made.Wait(10 * kSecond);
  made.KillAll();
  const Report report = made.Checked();
  EXPECT_EQ(Only(report).kind, Kind::kGroup);
  EXPECT_EQ(Only(report).blamed, (Ranks{0, 1}));
}

TEST(EndsTest, AnEnvironmentThatDiffersIsShownWhenAllWait) {
  MadeJob made = Trained(2);
  made.All(AllReduce(100), "train.py", 55, kInside);
  made[0].surroundings = {{"environment NCCL_PROTO", "Simple"}};
  made.Wait(10 * kSecond);
  made.KillAll();
  const Report report = made.Checked();
  const Finding& finding = Only(report);
  EXPECT_EQ(finding.kind, Kind::kInput);
  EXPECT_NE(finding.sentence.find("environment NCCL_PROTO differs: not set on rank 1, Simple on "
                                  "rank 0"),
            std::string::npos)
      << finding.sentence;
}

TEST(EndsTest, ADifferenceThatExplainsNothingIsANote) {
  MadeJob made = Trained(2);
  made[0].surroundings = {{"processor", "A"}};
  made[1].surroundings = {{"processor", "B"}};
  const Report report = made.Checked();
  EXPECT_TRUE(report.findings.empty());
  ASSERT_EQ(report.notes.size(), 1u);
  EXPECT_EQ(report.notes[0], "processor differs: A on rank 0, B on rank 1");
}

}  // namespace
}  // namespace deja::check
