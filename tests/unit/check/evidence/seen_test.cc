// What recordings show besides calls, and the findings of it: replica of parameters, input of
// loaders, unawaited, store, outside, straggler, order of names.
#include <gtest/gtest.h>

#include <cerrno>

#include "check/evidence/gather_seen.h"
#include "tests/unit/check/made_job.h"

namespace deja::check {
namespace {

// The sites of a rank: what notes name gets numbers.
uint32_t SiteIn(RankSummary& rank, const std::string& file, int line) {
  rank.sites.push_back({{file, line, "main"}});
  return static_cast<uint32_t>(rank.sites.size() - 1);
}

void Weigh(RankSummary& rank, uint64_t step, const std::string& name, uint64_t weight,
           uint64_t gradient, std::vector<uint64_t> replicas = {}) {
  WeightSeen seen;
  seen.step = step;
  seen.name = name;
  seen.weight = weight;
  seen.gradient = gradient;
  seen.replicas = std::move(replicas);
  seen.at = SiteIn(rank, "train.py", 30);
  seen.made = SiteIn(rank, "model.py", 12);
  seen.time_ns = 1000 * kSecond + step;
  rank.seen.weights.push_back(seen);
}

TEST(SeenTest, NotesOfPython) {
  Seen seen;
  std::vector<Site> sites = {Site{}};
  SeenGatherer gatherer(seen, [&](const Site& site) {
    sites.push_back(site);
    return static_cast<uint32_t>(sites.size() - 1);
  });
  NextCall next;
  EXPECT_FALSE(gatherer.OnNote("step 3", 5, next));
  EXPECT_TRUE(gatherer.OnNote("check/names key=loss%20a", 5, next));
  EXPECT_EQ(next.names, "key=loss%20a");
  EXPECT_TRUE(gatherer.OnNote("check/group members=0,2", 5, next));
  EXPECT_EQ(next.members, (std::vector<uint64_t>{0, 2}));
  EXPECT_TRUE(gatherer.OnNote(
      "check/state optimizer=1 step=7 name=nn1.weight weight=00000000000000ff gradient=none "
      "replicas=0,2 shape=4x1 made=model.py:12:Net.__init__|train.py:9:main at=train.py:30:main",
      5, next));
  ASSERT_EQ(seen.weights.size(), 1u);
  const WeightSeen& weight = seen.weights[0];
  EXPECT_EQ(weight.name, "nn1.weight");
  EXPECT_EQ(weight.weight, 0xffu);
  EXPECT_EQ(weight.gradient, kNoGradient);
  EXPECT_EQ(weight.replicas, (std::vector<uint64_t>{0, 2}));
  EXPECT_EQ(Describe(sites[weight.made]), "model.py:12 in Net.__init__ (from train.py:9 in main)");
  EXPECT_TRUE(gatherer.OnNote(
      "check/looked name=ckpt/last%20one.pt found=0 at=resume.py:14:Resume|train.py:9:main", 6,
      next));
  ASSERT_EQ(seen.inputs.size(), 1u);
  EXPECT_EQ(seen.inputs[0].kind, InputKind::kLook);
  EXPECT_EQ(seen.inputs[0].name, "ckpt/last one.pt");
  EXPECT_EQ(seen.inputs[0].shown, "not there at resume.py:14 in Resume");
  EXPECT_TRUE(gatherer.OnNote(
      "check/batch loader=0 passed=1 batch=3 rows=5,1 size=9 sampler=S shuffles=1 epoch=1 seed=0 "
      "trains=0 digest=unknown at=",
      6, next));
  ASSERT_EQ(seen.batches.size(), 1u);
  EXPECT_EQ(seen.batches[0].rows, (std::vector<uint64_t>{5, 1}));
  EXPECT_EQ(seen.batches[0].digest, kUnknownDigest);
  EXPECT_TRUE(gatherer.OnNote("check/of a newer version", 7, next));
}

TEST(SeenTest, NotesThatMakeNoSense) {
  Seen seen;
  SeenGatherer gatherer(seen, [](const Site&) { return 1u; });
  NextCall next;
  for (const char* text : {"check/", "check/state", "check/state =", "check/batch rows=,,x at=::|:",
                           "check/names a=%", "check/garbage phase=stop", "check/state name=%zz%4"})
    EXPECT_TRUE(gatherer.OnNote(text, 1, next)) << text;
}

TEST(WeightsTest, OneGradientForParametersThatAreNotOne) {
  MadeJob made(2);
  for (uint32_t rank : {0, 1}) Weigh(made[rank], 1, "fc.weight", 10 + rank, 77);
  const Report report = made.Checked();
  const Finding& finding = Only(report);
  EXPECT_EQ(finding.kind, Kind::kReplica);
  EXPECT_EQ(finding.step, 1u);
  EXPECT_EQ(finding.blamed, (Ranks{0, 1}));
  EXPECT_NE(finding.sentence.find("the replicas did not begin alike"), std::string::npos);
  ASSERT_EQ(finding.sides.size(), 2u);
  EXPECT_EQ(finding.sides[1].site.front().file, "model.py");
}

TEST(WeightsTest, AGradientThatWasNotSummed) {
  MadeJob made(2);
  for (uint32_t rank : {0, 1}) {
    Weigh(made[rank], 1, "nn1", 10, 70 + rank, {0, 1});
    Weigh(made[rank], 1, "nn2", 11, 60, {0, 1});
  }
  const Report report = made.Checked();
  EXPECT_EQ(Only(report).kind, Kind::kReplica);
  EXPECT_NE(Only(report).sentence.find("the gradient of parameter \"nn1\""), std::string::npos);
}

// Parts of a model: each rank has its own, and nothing says that they are replicas.
TEST(WeightsTest, PartsOfAModelAreNoReplicas) {
  MadeJob made(2);
  for (uint32_t rank : {0, 1}) {
    for (uint64_t step = 1; step < 4; ++step) {
      Weigh(made[rank], step, "column.weight", 100 * rank + step, 50 + rank);
      Weigh(made[rank], step, "row.weight", 200 * rank + step, 40 + rank);
    }
  }
  EXPECT_TRUE(made.Checked().findings.empty());
}

TEST(WeightsTest, AReplicaThatLeavesTheOthers) {
  MadeJob made(3);
  for (uint32_t rank : {0, 1, 2}) {
    Weigh(made[rank], 1, "a", 1, kUnknownDigest);
    Weigh(made[rank], 1, "b", 2, kUnknownDigest);
    Weigh(made[rank], 2, "a", rank == 1 ? 99 : 3, kUnknownDigest);
    Weigh(made[rank], 2, "b", 4, kUnknownDigest);
  }
  const Report report = made.Checked();
  EXPECT_EQ(Only(report).blamed, Ranks{1});
  EXPECT_EQ(Only(report).waiting, (Ranks{0, 2}));
}

void Read(RankSummary& rank, uint64_t pass, std::vector<uint64_t> rows, uint64_t size,
          const std::string& epoch, bool trains, bool shuffles = true) {
  BatchSeen batch;
  batch.pass = pass;
  batch.batch = 1;
  batch.rows = std::move(rows);
  batch.size = size;
  batch.sampler = "DistributedSampler";
  batch.shuffles = shuffles;
  batch.epoch = epoch;
  batch.trains = trains;
  rank.seen.batches.push_back(batch);
  rank.seen.passes.push_back({0, pass, 1, kNoSite, 0});
}

// What a rank caught stands beside what it then did not do.
TEST(BranchesTest, AnExceptionThatOneRankHasCaught) {
  MadeJob made(3);
  for (int i = 0; i < 3; ++i) made.All(AllReduce(8), "train.py", 5);
  constexpr With kInside = {0, 0, 0, 0};
  for (uint32_t rank : {0, 1}) made.Do(rank, AllReduce(8), "train.py", 5, kInside);
  made.Do(2, Barrier(), "train.py", 9, kInside);
  made.Wait(60 * kSecond);
  made.KillAll();
  std::vector<Site> sites = {Site{}};
  const auto number_of = [&](const Site& site) {
    sites.push_back(site);
    return static_cast<uint32_t>(sites.size() - 1);
  };
  NextCall next;
  for (uint32_t rank : {0, 1, 2}) {
    SeenGatherer gatherer(made[rank].seen, number_of);
    const uint64_t end = made[rank].comms[0].collectives.back().time_ns;
    // A warning that all ranks raise says nothing.
    gatherer.OnNote("check/caught error=KeyError text=LR raised=a.py:1:f caught=a.py:3:f", end - 2,
                    next);
    if (rank == 2)
      gatherer.OnNote(
          "check/caught error=ValueError text=bad%20sample raised=data.py:41:load|train.py:7:main "
          "caught=train.py:8:main",
          end - 3'000'000, next);
    gatherer.Finish();
  }
  const Report report = made.Checked();
  EXPECT_EQ(Only(report).kind, Kind::kMissing);
  EXPECT_EQ(Only(report).evidence,
            (std::vector<std::string>{"rank 2 raised ValueError: bad sample at data.py:41 in load, "
                                      "caught at train.py:8 in main, 3 ms before"}));
}

TEST(LoadersTest, TheSameOrderInEachPass) {
  MadeJob made(2);
  for (uint32_t rank : {0, 1})
    for (uint64_t pass : {0, 1})
      Read(made[rank], pass, {rank, 8, 2, 12, 4, 10, 6, 14}, 16, "0", true);
  const Report report = made.Checked();
  EXPECT_EQ(Only(report).kind, Kind::kInput);
  EXPECT_NE(Only(report).sentence.find("set_epoch is not called"), std::string::npos);
}

TEST(LoadersTest, OrderThatIsMeantToBeTheSame) {
  MadeJob made(2);
  for (uint32_t rank : {0, 1})
    for (uint64_t pass : {0, 1})
      Read(made[rank], pass, {rank, 2, 4, 6, 8, 10, 12, 14}, 16, "none", true, false);
  EXPECT_TRUE(made.Checked().findings.empty());
}

TEST(LoadersTest, RowsThatAreLeftOutOfAnEvaluation) {
  MadeJob made(2);
  Read(made[0], 0, {0, 2}, 5, "none", false);
  Read(made[1], 0, {1, 3}, 5, "none", false);
  const Report report = made.Checked();
  EXPECT_EQ(Only(report).kind, Kind::kInput);
  EXPECT_NE(Only(report).sentence.find("read by no rank: 1 (4)"), std::string::npos)
      << Only(report).sentence;
}

// What training leaves out it reads in another epoch.
TEST(LoadersTest, RowsThatAreLeftOutOfTraining) {
  MadeJob made(2);
  Read(made[0], 0, {0, 2}, 5, "0", true);
  Read(made[1], 0, {1, 3}, 5, "0", true);
  EXPECT_TRUE(made.Checked().findings.empty());
}

TEST(LoadersTest, ARankThatShufflesAnotherEpoch) {
  MadeJob made(3);
  Read(made[0], 0, {0, 3}, 6, "1", true);
  Read(made[1], 0, {1, 4}, 6, "1", true);
  Read(made[2], 0, {4, 0}, 6, "0", true);
  const Report report = made.Checked();
  EXPECT_EQ(Only(report).kind, Kind::kInput);
  EXPECT_EQ(Only(report).blamed, Ranks{2});
}

TEST(ChangesTest, OneFindingForAllRanks) {
  MadeJob made(2);
  for (uint32_t rank : {0, 1}) {
    ChangeSeen change;
    change.what = "allreduce";
    change.times = 1;
    change.given = SiteIn(made[rank], "train.py", 8);
    change.at = SiteIn(made[rank], "train.py", 10);
    made[rank].seen.changes = {change, change};
  }
  const Report report = made.Checked();
  EXPECT_EQ(Only(report).kind, Kind::kUnawaited);
  EXPECT_EQ(Only(report).blamed, (Ranks{0, 1}));
  EXPECT_NE(Only(report).sentence.find("train.py:8"), std::string::npos);
}

SocketSeen Bind(const std::string& local, uint32_t error) {
  SocketSeen socket;
  socket.local = local;
  socket.error = error;
  socket.is_bind = true;
  socket.time_ns = 1;
  return socket;
}

TEST(StoresTest, AnAddressThatIsTaken) {
  MadeJob made(2);
  made[0].seen.sockets = {Bind("0.0.0.0:29500", EADDRINUSE)};
  made[1].seen.sockets.push_back({"", "127.0.0.1:29500", 0, false, 1});
  made.EndBy(0, EndKind::kExit, 1);
  made.EndBy(1, EndKind::kEnded, 0, SIGTERM);
  const Report report = made.Checked();
  EXPECT_EQ(Only(report).kind, Kind::kStore);
  EXPECT_EQ(Only(report).blamed, Ranks{0});
  EXPECT_EQ(Only(report).waiting, Ranks{1});
}

// A program that takes the next address, or the same one in the other family.
TEST(StoresTest, AnAddressThatWasHadAfterAll) {
  MadeJob made(2);
  made[0].seen.sockets = {Bind("[::]:29500", EADDRINUSE), Bind("0.0.0.0:29500", 0)};
  made.EndBy(0, EndKind::kExit, 1);
  made[1].seen.sockets = {Bind("0.0.0.0:80", EADDRINUSE)};
  EXPECT_TRUE(made.Checked().findings.empty());
}

TEST(StragglersTest, ARankThatIsLateAgainAndAgain) {
  MadeJob made(3);
  for (int i = 0; i < 12; ++i) {
    for (uint32_t rank : {0, 1}) made.Do(rank, AllReduce(8), "train.py", 5);
    made.Wait(kSecond / 2);
    made.Do(2, AllReduce(8), "train.py", 5);
    made.Wait(kSecond / 100);
  }
  const Report report = made.Checked();
  EXPECT_EQ(Only(report).kind, Kind::kStraggler);
  EXPECT_EQ(Only(report).blamed, Ranks{2});
}

TEST(StragglersTest, AsynchronousOperationsOverlap) {
  MadeJob made(2);
  for (int i = 0; i < 12; ++i) {
    for (uint32_t rank : {0, 1}) made.Do(rank, AllReduce(8), "train.py", 5).lasted_us = 400'000;
    made.Wait(kSecond / 10);
  }
  EXPECT_TRUE(made.Checked().findings.empty());
}

TEST(StragglersTest, RanksThatAreLateInTurn) {
  MadeJob made(3);
  for (uint32_t i = 0; i < 12; ++i) {
    const uint32_t late = i % 3;
    for (uint32_t rank : {0, 1, 2})
      if (rank != late) made.Do(rank, AllReduce(8), "train.py", 5);
    made.Wait(kSecond / 2);
    made.Do(late, AllReduce(8), "train.py", 5);
  }
  EXPECT_TRUE(made.Checked().findings.empty());
}

void Name(MadeJob& made, uint32_t rank, const std::string& names) {
  made.Do(rank, AllReduce(1), "log.py", 7);
  made[rank].names.push_back(names);
  made[rank].comms[0].collectives.Own().back().names =
      static_cast<uint32_t>(made[rank].names.size() - 1);
}

TEST(NamesTest, AnotherOrderOfMetrics) {
  MadeJob made(2);
  for (const char* name : {"key=a", "key=b"}) Name(made, 0, name);
  for (const char* name : {"key=b", "key=a"}) Name(made, 1, name);
  const Report report = made.Checked();
  EXPECT_EQ(Only(report).kind, Kind::kOrder);
  EXPECT_EQ(Only(report).number, 1u);
}

// What each rank calls its own data is no name that they share.
TEST(NamesTest, NamesOfARanksOwn) {
  MadeJob made(2);
  for (const char* name : {"file=a", "file=b", "file=a"}) Name(made, 0, name);
  for (const char* name : {"file=b", "file=a", "file=b"}) Name(made, 1, name);
  EXPECT_TRUE(made.Checked().findings.empty());
}

TEST(BranchesTest, AnEarlierReadThatDiffers) {
  MadeJob made(2);
  made.All(AllReduce(8), "train.py", 5);
  for (uint32_t rank : {0, 1}) {
    InputSeen input;
    input.name = "/data/last.pt";
    input.value = rank;
    input.shown = rank == 0 ? "not there" : "12 bytes";
    input.time_ns = made[rank].last_time_ns + 2;
    made[rank].seen.inputs = {input};
  }
  made.Wait(10);
  made.Do(0, AllReduce(8), "train.py", 5);
  made.Do(1, Of(Operation::kBroadcast, 3, 0), "save.py", 9);
  const Report report = made.Checked();
  const Finding& finding = Only(report);
  ASSERT_FALSE(finding.evidence.empty());
  EXPECT_NE(finding.evidence.back().find("read the file /data/last.pt as"), std::string::npos)
      << finding.evidence.back();
}

}  // namespace
}  // namespace deja::check
