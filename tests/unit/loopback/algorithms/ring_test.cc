#include "loopback/algorithms/ring.h"

#include <gtest/gtest.h>

#include <vector>

namespace deja::loopback {
namespace {

// A ring all-reduce as NCCL's kernel does it: chunks travel from rank to rank, every rank adds its
// own to what arrives. Values are the lists of ranks in the order in which they were added.
struct Trip {
  std::vector<int> order;
  int ended_at = -1;
};

// Which rank's chunk element `i` is in, and the trip that it makes.
std::vector<Trip> Simulate(size_t count, int n, size_t element_bytes, size_t chunk_bytes) {
  std::vector<Trip> trips(count);
  size_t chunk = chunk_bytes / element_bytes;
  size_t ranks = static_cast<size_t>(n);
  for (size_t start = 0; start < count; start += ranks * chunk) {
    size_t rest = count - start;
    size_t part = chunk;
    if (rest < ranks * chunk) {
      part = rest / ranks + (rest % ranks != 0 ? 1 : 0);
      while (part * element_bytes % 16 != 0) ++part;
    }
    for (int c = 0; c < n; ++c) {
      // The chunk starts at its owner's successor, and goes on to the owner.
      std::vector<int> order;
      int at = c;
      do {
        at = (at + 1) % n;
        order.push_back(at);
      } while (at != c);
      for (size_t i = 0; i < part; ++i) {
        size_t element = start + static_cast<size_t>(c) * part + i;
        if (element < count) trips[element] = {order, c};
      }
    }
  }
  return trips;
}

TEST(RingTest, ChunksAreThoseOfTheSimulatedRing) {
  for (int n : {1, 2, 3, 4, 7, 8}) {
    for (size_t element : {1, 2, 4, 8}) {
      for (size_t count : {1, 2, 15, 16, 17, 64, 100, 127, 128, 129, 500, 1025}) {
        constexpr size_t kChunkBytes = 64;
        RingPartition partition(count, n, element, kChunkBytes);
        auto trips = Simulate(count, n, element, kChunkBytes);
        size_t covered = 0;
        for (size_t loop = 0; loop < partition.loops(); ++loop) {
          for (int rank = 0; rank < n; ++rank) {
            Range chunk = partition.Chunk(loop, rank);
            covered += chunk.size();
            for (size_t i = chunk.begin; i < chunk.end; ++i) {
              ASSERT_EQ(trips[i].ended_at, rank) << "n=" << n << " count=" << count << " i=" << i;
              for (int k = 0; k < n; ++k)
                ASSERT_EQ(FoldRank(rank, k, n), trips[i].order[static_cast<size_t>(k)]);
            }
          }
        }
        ASSERT_EQ(covered, count);
      }
    }
  }
}

TEST(RingTest, ChunksAreTwoMebibytesAndTheLastLoopIsCutEvenly) {
  // Two full loops of 4 x 2 MiB of floats, then 1000 elements in parts of 250, rounded up to 252.
  size_t chunk = (2u << 20) / 4;
  RingPartition partition(2 * 4 * chunk + 1000, 4, 4);
  ASSERT_EQ(partition.loops(), 3u);
  EXPECT_EQ(partition.Chunk(1, 2).begin, 6 * chunk);
  EXPECT_EQ(partition.Chunk(1, 2).size(), chunk);
  EXPECT_EQ(partition.ChunkElements(2), 252u);
  EXPECT_EQ(partition.Chunk(2, 0).size(), 252u);
  EXPECT_EQ(partition.Chunk(2, 3).size(), 1000u - 3 * 252u);
}

TEST(RingTest, LastRanksMayHaveNothing) {
  RingPartition partition(5, 8, 4);
  ASSERT_EQ(partition.loops(), 1u);
  EXPECT_EQ(partition.Chunk(0, 0).size(), 4u);
  EXPECT_EQ(partition.Chunk(0, 1).size(), 1u);
  for (int rank = 2; rank < 8; ++rank) EXPECT_EQ(partition.Chunk(0, rank).size(), 0u);
}

}  // namespace
}  // namespace deja::loopback
