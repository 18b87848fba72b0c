#include "loopback/ranks/rendezvous.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>

#include <cstdlib>
#include <cstring>
#include <memory>

#include "loopback/ranks/last_error.h"

namespace {
// Counts the next messages that an end of file announces. The kernel does that when a message and
// the end come while it looks.
std::atomic<int> g_early_ends{0};
}  // namespace

// In front of the C library's.
extern "C" ssize_t recvmsg(int fd, msghdr* message, int flags) {
  char byte;
  if (g_early_ends.load() > 0 && recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 1 &&
      g_early_ends.fetch_sub(1) > 0)
    return 0;
  return syscall(SYS_recvmsg, fd, message, flags);
}

namespace deja::loopback {
namespace {

Key RandomKey() {
  ncclUniqueId id;
  MakeUniqueId(&id);
  std::memcpy(id.internal + 64, &id, 8);
  int pid = getpid();
  std::memcpy(id.internal + 80, &pid, sizeof pid);
  return KeyOfIds(&id, 1);
}

struct Rank {
  Rank(const Key& key, int rank, int nranks) : meeting(key, rank, nranks, area) {}
  bool Step() {
    if (!done) done = meeting.Step() == Progress::kDone;
    return done;
  }
  SharedArea area;
  Rendezvous meeting;
  bool done = false;
};

TEST(RendezvousTest, RanksMeetInAnyOrderFromOneThread) {
  Key key = RandomKey();
  std::vector<std::unique_ptr<Rank>> ranks;
  for (int rank : {3, 1, 0, 2}) ranks.push_back(std::make_unique<Rank>(key, rank, 4));
  for (int round = 0; round < 100; ++round)
    for (auto& rank : ranks) rank->Step();
  for (auto& rank : ranks) {
    EXPECT_TRUE(rank->done);
    EXPECT_EQ(rank->meeting.result(), ncclSuccess);
    EXPECT_EQ(std::memcmp(rank->area.header().nonce, ranks[0]->area.header().nonce, 16), 0);
    EXPECT_EQ(rank->area.fd(), -1);
  }
}

TEST(RendezvousTest, AnEndThatTheKernelReportsBeforeTheReplyIsNotOne) {
  Key key = RandomKey();
  Rank zero(key, 0, 2);
  Rank one(key, 1, 2);
  g_early_ends.store(1);
  for (int round = 0; round < 100; ++round) {
    zero.Step();
    one.Step();
  }
  EXPECT_EQ(g_early_ends.exchange(0), 0);
  EXPECT_TRUE(zero.done && one.done);
  EXPECT_EQ(zero.meeting.result(), ncclSuccess);
  EXPECT_EQ(one.meeting.result(), ncclSuccess) << LastError();
}

TEST(RendezvousTest, TwoCommunicatorsOfOneKeyAreMadeOneAfterTheOther) {
  Key key = RandomKey();
  for (int i = 0; i < 2; ++i) {
    Rank zero(key, 0, 2);
    Rank one(key, 1, 2);
    for (int round = 0; round < 100; ++round) {
      zero.Step();
      one.Step();
    }
    EXPECT_TRUE(zero.done && one.done);
  }
}

TEST(RendezvousTest, ARankThatIsThereTwiceIsRefused) {
  Key key = RandomKey();
  Rank zero(key, 0, 3);
  Rank one(key, 1, 3);
  Rank other(key, 1, 3);
  for (int round = 0; round < 100; ++round) {
    zero.Step();
    one.Step();
    if (round > 50) other.Step();
  }
  EXPECT_FALSE(zero.done);
  EXPECT_FALSE(one.done);
  EXPECT_TRUE(other.done);
  EXPECT_EQ(other.meeting.result(), ncclInvalidUsage);
  EXPECT_NE(std::strstr(LastError(), "two processes are rank 1"), nullptr);
}

// The maker of the id may take longer than any patience.
TEST(RendezvousTest, WaitsForRank0WhileTheMakerOfTheIdIsAlive) {
  setenv("NCCL_SOCKET_RETRY_CNT", "0", 1);
  ncclUniqueId made;
  MakeUniqueId(&made);
  ncclUniqueId unknown = made;
  unknown.internal[50] = 1;
  Rank waits(KeyOfIds(&made, 1), 1, 2);
  Rank gives_up(KeyOfIds(&unknown, 1), 1, 2);
  unsetenv("NCCL_SOCKET_RETRY_CNT");
  for (int round = 0; round < 10; ++round) {
    waits.Step();
    gives_up.Step();
  }
  EXPECT_FALSE(waits.done);
  EXPECT_TRUE(gives_up.done);
  EXPECT_EQ(gives_up.meeting.result(), ncclRemoteError);
  Rank zero(KeyOfIds(&made, 1), 0, 2);
  for (int round = 0; round < 100; ++round) {
    zero.Step();
    waits.Step();
  }
  EXPECT_TRUE(waits.done);
  EXPECT_EQ(waits.meeting.result(), ncclSuccess);
}

TEST(RendezvousTest, IdsAreRandomWithoutACommonAddress) {
  unsetenv("NCCL_COMM_ID");
  ncclUniqueId a;
  ncclUniqueId b;
  MakeUniqueId(&a);
  MakeUniqueId(&b);
  EXPECT_NE(std::memcmp(&a, &b, sizeof a), 0);
  EXPECT_NE(KeyOfIds(&a, 1), KeyOfIds(&b, 1));
}

TEST(RendezvousTest, ChildrenHaveKeysOfTheirOwn) {
  const uint8_t one[16] = {1};
  const uint8_t two[16] = {2};
  Key key = KeyOfChild(one, "split", 0, 0);
  EXPECT_EQ(key, KeyOfChild(one, "split", 0, 0));
  EXPECT_NE(key, KeyOfChild(two, "split", 0, 0));
  EXPECT_NE(key, KeyOfChild(one, "shrink", 0, 0));
  EXPECT_NE(key, KeyOfChild(one, "split", 1, 0));
  EXPECT_NE(key, KeyOfChild(one, "split", 0, 1));
}

// With a common address every process numbers its ids by itself, until it uses another one's.
TEST(RendezvousTest, IdsOfACommonAddressAgreeBetweenProcesses) {
  setenv("NCCL_COMM_ID", "127.0.0.1:1", 1);
  ncclUniqueId mine[2];
  for (ncclUniqueId& id : mine) MakeUniqueId(&id);
  EXPECT_NE(std::memcmp(&mine[0], &mine[1], sizeof mine[0]), 0);
  NoticeUniqueId(mine[1]);
  ncclUniqueId next;
  MakeUniqueId(&next);
  // Another process of the same job has got further than we have.
  ncclUniqueId foreign = next;
  foreign.internal[24] = 100;
  NoticeUniqueId(foreign);
  ncclUniqueId random;
  MakeUniqueId(&random);
  EXPECT_EQ(std::memcmp(&next, &mine[0], 24), 0);
  EXPECT_NE(std::memcmp(&random, &mine[0], 24), 0);
  unsetenv("NCCL_COMM_ID");
}

}  // namespace
}  // namespace deja::loopback
