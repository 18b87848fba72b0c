// Communicators whose ranks are threads of this process: what sanitizers can see into.
#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "loopback/algorithms/collectives.h"
#include "loopback/algorithms/p2p.h"
#include "loopback/ranks/group.h"
#include "loopback/ranks/init.h"
#include "reference.h"

namespace deja::loopback {
namespace {

using Bytes = std::vector<char>;

// Runs `body(comm)` on a thread for each of `n` ranks.
template <typename Body>
void OnRanks(int n, const Body& body) {
  ncclUniqueId id{};
  RandomBytes(id.internal, 16);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < n; ++rank) {
    threads.emplace_back([&, rank] {
      ncclComm_t comm = nullptr;
      OpList ops;
      ops.push_back(MakeInit(NewComm(rank, n, Settings{}), KeyOfIds(&id, 1), &comm, false));
      ASSERT_EQ(RunOps(ops), ncclSuccess);
      ops[0]->Settle();
      ASSERT_NE(comm, nullptr);
      body(comm);
      DeleteComm(comm, RankState::kLeft);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

ncclResult_t RunOne(std::unique_ptr<Op> op) {
  OpList ops;
  ops.push_back(std::move(op));
  return RunOps(ops);
}

CollectiveCall AllReduceCall(const Bytes& in, Bytes* out, ncclDataType_t type, ncclRedOp_t op,
                             int n) {
  return {CollectiveKind::kAllReduce,
          "AllReduce",
          in.data(),
          out->data(),
          in.size() / ElementSize(type),
          Reduction::BuiltIn(op, type, n)};
}

TEST(RanksTest, AllReducesOfAllSizesAreRight) {
  for (int n : {2, 3, 5}) {
    OnRanks(n, [n](ncclComm_t comm) {
      for (size_t count : {1, 100, 16384, 16385, 70000}) {
        auto inputs = app::Inputs(4, n, count, ncclFloat32, count);
        const Bytes& mine = inputs[static_cast<size_t>(comm->rank)];
        Bytes out(mine.size());
        ASSERT_EQ(RunOne(MakeCollective(comm, AllReduceCall(mine, &out, ncclFloat32, ncclSum, n))),
                  ncclSuccess);
        EXPECT_EQ(out, app::ReferenceAllReduce(ncclFloat32, app::BuiltIn(ncclSum), inputs, count));
      }
    });
  }
}

TEST(RanksTest, ManySmallCollectivesFollowEachOtherClosely) {
  OnRanks(4, [](ncclComm_t comm) {
    for (int64_t i = 0; i < 2000; ++i) {
      int64_t value = i * 4 + comm->rank;
      int64_t sum = 0;
      CollectiveCall call{CollectiveKind::kAllReduce,
                          "AllReduce",
                          &value,
                          &sum,
                          1,
                          Reduction::BuiltIn(ncclSum, ncclInt64, 4)};
      ASSERT_EQ(RunOne(MakeCollective(comm, call)), ncclSuccess);
      ASSERT_EQ(sum, i * 16 + 6);
    }
  });
}

TEST(RanksTest, RootsRunAheadWithoutOverwritingWhatOthersStillRead) {
  OnRanks(3, [](ncclComm_t comm) {
    for (int64_t i = 0; i < 500; ++i) {
      int64_t value = comm->rank == 0 ? i : -1;
      CollectiveCall broadcast{CollectiveKind::kBroadcast,
                               "Broadcast",
                               &value,
                               &value,
                               1,
                               Reduction::BuiltIn(ncclSum, ncclInt64, 3)};
      ASSERT_EQ(RunOne(MakeCollective(comm, broadcast)), ncclSuccess);
      ASSERT_EQ(value, i);
      int64_t sum = -1;
      CollectiveCall reduce{CollectiveKind::kReduce,
                            "Reduce",
                            &value,
                            &sum,
                            1,
                            Reduction::BuiltIn(ncclSum, ncclInt64, 3),
                            static_cast<int>(i % 3)};
      ASSERT_EQ(RunOne(MakeCollective(comm, reduce)), ncclSuccess);
      ASSERT_EQ(sum, comm->rank == i % 3 ? 3 * i : -1);
    }
  });
}

TEST(RanksTest, ManyOperationsInFlightAtOnce) {
  OnRanks(3, [](ncclComm_t comm) {
    constexpr size_t kBytes = 600000;
    OpList ops;
    std::vector<Bytes> received;
    std::vector<Bytes> reduced(4, Bytes(400));
    auto own = static_cast<uint64_t>(comm->rank);
    std::vector<Bytes> sent;
    for (int peer = 0; peer < 3; ++peer) {
      sent.push_back(app::Input(1, comm->rank, static_cast<uint64_t>(peer), ncclUint8, kBytes));
      received.emplace_back(kBytes);
    }
    auto inputs = app::Inputs(1, 3, 50, ncclInt32, 100);
    for (Bytes& out : reduced)
      ops.push_back(MakeCollective(comm, AllReduceCall(inputs[own], &out, ncclInt32, ncclSum, 3)));
    for (int peer = 2; peer >= 0; --peer) {
      if (peer == comm->rank) continue;
      auto p = static_cast<size_t>(peer);
      ops.push_back(MakeReceive(comm, received[p].data(), kBytes, peer));
      ops.push_back(MakeSend(comm, sent[p].data(), kBytes, peer));
    }
    ASSERT_EQ(RunOps(ops), ncclSuccess);
    for (int peer = 0; peer < 3; ++peer) {
      if (peer == comm->rank) continue;
      EXPECT_EQ(received[static_cast<size_t>(peer)], app::Input(1, peer, own, ncclUint8, kBytes));
    }
    for (const Bytes& out : reduced)
      EXPECT_EQ(out, app::ReferenceAllReduce(ncclInt32, app::BuiltIn(ncclSum), inputs, 100));
  });
}

TEST(RanksTest, ARankThatLeavesIsMissed) {
  OnRanks(3, [](ncclComm_t comm) {
    if (comm->rank == 1) return;
    int64_t value = 1;
    CollectiveCall call{CollectiveKind::kAllReduce,
                        "AllReduce",
                        &value,
                        &value,
                        1,
                        Reduction::BuiltIn(ncclSum, ncclInt64, 3)};
    EXPECT_EQ(RunOne(MakeCollective(comm, call)), ncclRemoteError);
    EXPECT_EQ(comm->failure.load(), ncclRemoteError);
  });
}

}  // namespace
}  // namespace deja::loopback
