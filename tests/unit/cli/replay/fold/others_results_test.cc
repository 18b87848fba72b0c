#include "cli/replay/fold/others_results.h"

#include <vector>

#include "api/nccl_table.h"
#include "tests/unit/cli/written_rank.h"

namespace deja::cli {
namespace {

void Results(WrittenRank& rank, uint64_t seq, bool aborted = false) {
  format::CallResults results;
  results.comm = 1;
  results.comm_seq = seq;
  format::Tensor tensor;
  if (aborted) tensor.payload = static_cast<uint32_t>(format::PayloadState::kAborted);
  results.outputs.push_back(tensor);
  rank.Add(results);
}

// Operation 1 is that of WrittenRank::Begin.
void Work(WrittenRank& rank, uint64_t with_results, uint64_t entered) {
  rank.Begin();
  for (uint64_t seq = 1; seq <= entered; ++seq) {
    if (seq > 1) rank.Enter(seq);
    if (seq <= with_results) Results(rank, seq);
  }
  rank.EndBatch();
}

std::set<JobOperation> Find(WrittenRank& a, WrittenRank& b) {
  const std::vector<const format::RankReader*> readers{&a.Reader(), &b.Reader()};
  const std::vector<RankComms> comms{{{1, {7, 2}}}, {{1, {7, 2}}}};
  return FindOthersResults(readers, comms);
}

void ExitWell(WrittenRank& rank) {
  rank.Add(format::ProcessExit{0, 0});
  rank.EndBatch();
}

TEST(OthersResults, AreThoseThatARankThatEndedHasNot) {
  WrittenRank dead;
  Work(dead, 3, 5);
  WrittenRank other;
  Work(other, 4, 5);
  ExitWell(other);
  EXPECT_EQ(Find(dead, other), (std::set<JobOperation>{{7, 2, 4}}));
}

TEST(OthersResults, AreNoneWhereNoRankHasOne) {
  WrittenRank dead;
  Work(dead, 3, 5);
  WrittenRank other;
  Work(other, 3, 5);
  Results(other, 4, true);
  other.EndBatch();
  ExitWell(other);
  EXPECT_TRUE(Find(dead, other).empty());
}

TEST(OthersResults, AreOfNoInterestToARankThatEndedWell) {
  WrittenRank quiet;  // it has no outputs to see
  Work(quiet, 0, 5);
  ExitWell(quiet);
  WrittenRank other;
  Work(other, 5, 5);
  ExitWell(other);
  EXPECT_TRUE(Find(quiet, other).empty());
}

TEST(OthersResults, AreNotComparedByNumberWithPointToPointCalls) {
  WrittenRank dead;
  Work(dead, 3, 4);
  format::CallEnter send;
  send.api = static_cast<uint32_t>(api::NcclApi::ncclSend);
  send.comm = 1;
  send.comm_seq = 5;
  dead.Add(send);
  dead.EndBatch();
  WrittenRank other;
  Work(other, 5, 5);
  ExitWell(other);
  EXPECT_TRUE(Find(dead, other).empty());
}

}  // namespace
}  // namespace deja::cli
