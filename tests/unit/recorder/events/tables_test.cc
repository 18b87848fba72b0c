#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <random>

#include "recorder/events/handle_table.h"
#include "recorder/events/mapped_memory.h"
#include "recorder/facts/rank_identity.h"
#include "recorder/inputs/seen_inputs.h"
#include "recorder/nccl/comm_registry.h"

namespace deja::recorder {
namespace {

TEST(KeyMapTest, BehavesLikeAMap) {
  KeyMap map;
  std::map<uint64_t, uint32_t> model;
  std::mt19937_64 random(42);
  for (int i = 0; i < 200000; ++i) {
    uint64_t key = 1 + random() % 600;  // many collisions, several growths
    switch (random() % 3) {
      case 0:
        map.Erase(key);
        model.erase(key);
        break;
      default:
        ASSERT_TRUE(map.Set(key, static_cast<uint32_t>(i)));
        model[key] = static_cast<uint32_t>(i);
    }
    uint64_t probe = 1 + random() % 600;
    auto it = model.find(probe);
    ASSERT_EQ(map.Find(probe), it == model.end() ? KeyMap::kMissing : it->second);
  }
}

TEST(HandleTableTest, NumbersStartAtOneAndAreNotUsedAgain) {
  HandleTable table;
  bool is_new = false;
  EXPECT_EQ(table.Wire(HandleKind::kStream, 0, is_new), 0u);
  EXPECT_EQ(table.Wire(HandleKind::kStream, 0xabc, is_new), 1u);
  EXPECT_TRUE(is_new);
  EXPECT_EQ(table.Wire(HandleKind::kStream, 0xabc, is_new), 1u);
  EXPECT_FALSE(is_new);
  EXPECT_EQ(table.Wire(HandleKind::kWindow, 0xabc, is_new), 1u);
  table.Forget(HandleKind::kStream, 0xabc);
  EXPECT_EQ(table.Wire(HandleKind::kStream, 0xabc, is_new), 2u);
}

TEST(CommRegistryTest, ChildrenOfEqualParentsAreEqual) {
  EXPECT_EQ(HashOfChild(5, 6, 0, 1), HashOfChild(5, 6, 0, 1));
  EXPECT_NE(HashOfChild(5, 6, 0, 1), HashOfChild(5, 6, 0, 2));
  EXPECT_NE(HashOfChild(5, 6, 0, 1), HashOfChild(5, 6, 1, 1));
}

TEST(CommRegistryTest, KeepsThousandsApart) {
  CommRegistry comms;
  for (uint64_t i = 1; i <= 5000; ++i) comms.Add(i * 64, i, static_cast<int>(i % 8), 8);
  for (uint64_t i = 1; i <= 5000; ++i) {
    Communicator* comm = comms.Find(i * 64);
    ASSERT_NE(comm, nullptr);
    ASSERT_EQ(comm->number, i - 1);
    ASSERT_EQ(comm->hash, i);
  }
  EXPECT_EQ(comms.Find(0), nullptr);
  EXPECT_EQ(comms.Find(7), nullptr);
}

TEST(SeenInputsTest, RepeatsAreSeenAndChangesAreNot) {
  SeenInputs seen;
  EXPECT_FALSE(seen.AlreadySeen(1, 0, 100));
  EXPECT_TRUE(seen.AlreadySeen(1, 0, 100));
  EXPECT_FALSE(seen.AlreadySeen(1, 1, 100));
  EXPECT_FALSE(seen.AlreadySeen(1, 0, 101));
  EXPECT_TRUE(seen.AlreadySeen(1, 0, 101));
}

class RankIdentityTest : public testing::Test {
 protected:
  void SetUp() override { Clear(); }
  void TearDown() override { Clear(); }
  static void Clear() {
    for (const char* name :
         {"RANK", "WORLD_SIZE", "LOCAL_RANK", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE",
          "OMPI_COMM_WORLD_LOCAL_RANK", "PMIX_RANK", "PMI_RANK", "PMI_SIZE", "SLURM_PROCID",
          "SLURM_NTASKS", "SLURM_LOCALID"})
      unsetenv(name);
  }
};

TEST_F(RankIdentityTest, FirstLauncherInTheListWins) {
  setenv("SLURM_PROCID", "9", 1);
  setenv("SLURM_NTASKS", "10", 1);
  EXPECT_EQ(FindRankIdentity(0, 1).rank, 9u);
  setenv("OMPI_COMM_WORLD_RANK", "3", 1);
  setenv("OMPI_COMM_WORLD_SIZE", "4", 1);
  setenv("OMPI_COMM_WORLD_LOCAL_RANK", "1", 1);
  RankIdentity identity = FindRankIdentity(0, 1);
  EXPECT_EQ(identity.rank, 3u);
  EXPECT_EQ(identity.world_size, 4u);
  EXPECT_EQ(identity.local_rank, 1u);
}

TEST_F(RankIdentityTest, NonsenseIsNoRank) {
  for (const char* text : {"", "x", "-1", "3x", "99999999999999999999"}) {
    setenv("RANK", text, 1);
    EXPECT_EQ(FindRankIdentity(2, 6).rank, 2u) << text;
    EXPECT_EQ(FindRankIdentity(2, 6).world_size, 6u) << text;
  }
}

}  // namespace
}  // namespace deja::recorder
