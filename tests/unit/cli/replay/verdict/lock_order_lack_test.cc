#include "cli/replay/verdict/lock_order_lack.h"

#include <gtest/gtest.h>

#include "format/tail/lock_reading.h"
#include "tests/unit/cli/written_rank.h"

namespace deja::cli {
namespace {

TEST(LockOrderLackTest, OneThreadAndTheRecordersOwnNeedNone) {
  WrittenRank rank;
  rank.Begin();
  rank.Add(format::ThreadStart{1, "deja", 4712});
  rank.EndBatch();
  EXPECT_FALSE(LacksLockOrder(rank.Reader()));
}

TEST(LockOrderLackTest, SeveralThreadsHaveNone) {
  WrittenRank rank;
  rank.Begin();
  rank.Add(format::ThreadStart{1, "0.1", 4712});
  rank.EndBatch();
  EXPECT_TRUE(LacksLockOrder(rank.Reader()));
}

TEST(LockOrderLackTest, SeveralThreadsHaveOne) {
  WrittenRank rank;
  rank.Begin();
  rank.Add(format::ThreadStart{1, "0.1", 4712});
  format::ClockRun run;
  run.sources.push_back(static_cast<uint32_t>(format::SourceOfTurn(5)));
  run.deltas.push_back(format::ValueOfTurn(format::LockUse::kMutex, 5, 0));
  rank.Add(run);
  rank.EndBatch();
  EXPECT_FALSE(LacksLockOrder(rank.Reader()));
}

}  // namespace
}  // namespace deja::cli
