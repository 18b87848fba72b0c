// Summaries as bytes: all of them come back, and nothing else does.
#include "check/evidence/summary_codec.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <string>

#include "tests/unit/check/made_job.h"

namespace deja::check {
namespace {

// Every field has a value that is not its default.
RankSummary WholeSummary() {
  MadeJob made(2);
  for (int i = 0; i < 50; ++i)
    made.Do(1, AllReduce(static_cast<uint64_t>(1 + i % 3)), "train.py", i % 5,
            {static_cast<uint64_t>(i) << 50, static_cast<uint64_t>(i)});
  made.Send(1, 0, 8);
  made.Receive(1, -1, 9).tag = -7;
  made.EndBy(1, EndKind::kSignal, -3, SIGSEGV);
  RankSummary summary = made[1];
  summary.is_partial = true;
  summary.unknown = "3 events are missing";
  OpenCall open;
  open.name = "AllReduce";
  open.comm = 0;
  open.seq = 51;
  open.time_ns = ~uint64_t{0};
  open.makes_communicator = true;
  open.nranks = 2;
  open.members = {0, 1};
  open.identity = 99;
  summary.open = {open, OpenCall{}};
  summary.last_call = "AllReduce #50 of comm 0";
  summary.last_site = 1;
  summary.last_step = 12;
  summary.end.exception = "ValueError: x\ny";
  summary.states = {{"weights", 5, 6, 7}};
  summary.names = {"", "name=loss"};
  summary.seen.weights = {{1, 2, "w", 3, kNoGradient, {0, 1}, 1, 0, 5}};
  summary.seen.optimizers = {{1, 2, "Adam", "0.1", 3, 4, kUnknownDigest, 1, 6}};
  summary.seen.generators = {{"rng/torch", 4, 5}};
  summary.seen.batches = {{1, 2, 3, {4, 5}, 6, "Sampler", true, "7", true, 8, 1, 9}};
  summary.seen.passes = {{1, 2, 3, 1, 4}};
  summary.seen.changes = {{"allreduce", "f.pt", "saver", 2, 1, 0, 3}};
  summary.seen.garbage = {{1, 2}};
  summary.seen.sockets = {{"a:1", "b:2", 98, true, 3}};
  summary.seen.inputs = {{InputKind::kClock, "the clock", 5, "5 s", 2, 6}};
  summary.surroundings = {{"env NCCL_PROTO", "LL"}};
  return summary;
}

TEST(SummaryCodecTest, WhatWasEncodedComesBack) {
  const RankSummary summary = WholeSummary();
  const std::string bytes = EncodeSummary(summary);
  RankSummary back;
  ASSERT_TRUE(DecodeSummary(bytes, back));
  EXPECT_EQ(EncodeSummary(back), bytes);
  ASSERT_EQ(back.comms.size(), 1u);
  ASSERT_EQ(back.comms[0].collectives.size(), 50u);
  const Call& call = back.comms[0].collectives[49];
  EXPECT_EQ(call.seq, summary.comms[0].collectives[49].seq);
  EXPECT_EQ(call.time_ns, summary.comms[0].collectives[49].time_ns);
  EXPECT_EQ(call.step, kNoStep);
  EXPECT_EQ(call.input, uint64_t{49} << 50);
  EXPECT_EQ(back.sites[call.site], summary.sites[summary.comms[0].collectives[49].site]);
  ASSERT_EQ(back.comms[0].transfers.size(), 2u);
  EXPECT_EQ(back.comms[0].transfers[1].peer, -1);
  EXPECT_EQ(back.comms[0].transfers[1].tag, -7);
  EXPECT_EQ(back.end.Describe(), summary.end.Describe());
  EXPECT_EQ(back.end.code, -3);
  ASSERT_EQ(back.open.size(), 2u);
  EXPECT_EQ(back.open[0].comm, 0u);
  EXPECT_EQ(back.open[0].members, (std::vector<uint64_t>{0, 1}));
  EXPECT_FALSE(back.open[1].comm);
  EXPECT_EQ(back.open[0].time_ns, ~uint64_t{0});
  EXPECT_EQ(back.seen.weights[0].gradient, kNoGradient);
  EXPECT_EQ(back.seen.batches[0].rows, (std::vector<uint64_t>{4, 5}));
  EXPECT_EQ(back.seen.inputs[0].kind, InputKind::kClock);
  EXPECT_EQ(back.surroundings, summary.surroundings);
}

TEST(SummaryCodecTest, WhatIsCutShortIsNone) {
  const std::string bytes = EncodeSummary(WholeSummary());
  for (size_t size = 0; size < bytes.size(); ++size) {
    RankSummary back;
    EXPECT_FALSE(DecodeSummary(std::string_view(bytes).substr(0, size), back)) << size;
  }
  RankSummary back;
  EXPECT_FALSE(DecodeSummary(bytes + 'x', back));
}

TEST(SummaryCodecTest, NumbersOfWhatIsNotThereAreNone) {
  RankSummary back;
  RankSummary summary = WholeSummary();
  summary.comms[0].collectives.Own()[7].site = 1000;
  EXPECT_FALSE(DecodeSummary(EncodeSummary(summary), back));
  summary = WholeSummary();
  summary.comms[0].transfers[0].signature = 1000;
  EXPECT_FALSE(DecodeSummary(EncodeSummary(summary), back));
  summary = WholeSummary();
  summary.seen.batches[0].at = 1000;
  EXPECT_FALSE(DecodeSummary(EncodeSummary(summary), back));
  summary = WholeSummary();
  summary.end.kind = static_cast<EndKind>(200);
  EXPECT_FALSE(DecodeSummary(EncodeSummary(summary), back));
  for (const int64_t redop : {int64_t{-33}, Signature::kReductions}) {
    summary = WholeSummary();
    summary.signatures[0].redop = redop;
    EXPECT_FALSE(DecodeSummary(EncodeSummary(summary), back)) << redop;
  }
}

TEST(SummaryCodecTest, AnyBytesAreReadOrRefused) {
  const std::string bytes = EncodeSummary(WholeSummary());
  std::mt19937 random(7);
  for (int round = 0; round < 3000; ++round) {
    std::string changed = bytes;
    for (int i = 0; i < 3; ++i) changed[random() % changed.size()] = static_cast<char>(random());
    RankSummary back;
    if (DecodeSummary(changed, back)) {
      EXPECT_FALSE(EncodeSummary(back).empty());
    }
  }
}

}  // namespace
}  // namespace deja::check
