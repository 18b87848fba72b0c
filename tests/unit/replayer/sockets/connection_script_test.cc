#include "replayer/sockets/connection_script.h"

#include <gtest/gtest.h>

#define XXH_INLINE_ALL
#include <sys/socket.h>
#include <xxhash.h>

#include <cerrno>
#include <string>

#include "tests/unit/replayer/fake_rank.h"

namespace deja::replayer {
namespace {

// A recording with connections, and the script made of it.
class ConnectionScriptTest : public testing::Test {
 protected:
  ConnectionScriptTest() {
    rank_.Thread(0, "0");
    rank_.Thread(1, "0.1");
  }
  uint32_t Open(uint32_t number, const char* name, uint32_t listener = 0,
                std::string_view peer = {}) {
    format::ConnectionOpened opened;
    opened.connection = number;
    opened.kind = static_cast<uint32_t>(listener == 0 ? format::ConnectionKind::kConnected
                                                      : format::ConnectionKind::kAccepted);
    opened.name = name;
    opened.type = SOCK_STREAM;
    opened.listener = listener;
    opened.peer = peer;
    rank_.Add(0, opened);
    return number - 1;
  }
  void Received(uint32_t thread, uint32_t number, std::string_view bytes, int error = 0) {
    format::Transfer transfer;
    transfer.connection = number;
    transfer.number = transfers_[number]++;
    transfer.result = error != 0 ? -1 : static_cast<int64_t>(bytes.size());
    transfer.error = static_cast<uint32_t>(error);
    transfer.data = rank_.Keep(std::string(bytes));
    transfer.sent_before = sent_[number];
    rank_.Add(thread, transfer);
  }
  void Sent(uint32_t thread, uint32_t number, std::string_view bytes, int error = 0) {
    format::Transfer transfer;
    transfer.connection = number;
    transfer.direction = 1;
    transfer.number = transfers_[number]++;
    transfer.result = error != 0 ? -1 : static_cast<int64_t>(bytes.size());
    transfer.error = static_cast<uint32_t>(error);
    transfer.sent_before = sent_[number];
    transfer.sent_hash = XXH3_64bits(bytes.data(), bytes.size());
    if (error == 0) sent_[number] += bytes.size();
    rank_.Add(thread, transfer);
  }
  ConnectionScript& Script() {
    if (script_ == nullptr) {
      auto plan = ReplayPlan::Build(rank_, {[](uint32_t) { return CallKind::kOrdered; },
                                            [](uint32_t) { return false; }, api::InputKindOf});
      plan_ = std::move(*plan);
      script_ = std::make_unique<ConnectionScript>(
          *plan_, [](const std::string& peer, uint64_t) { return peer == "1300 1200 1100"; },
          Fifos());
    }
    return *script_;
  }
  static std::span<const std::byte> Bytes(std::string_view text) {
    return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
  }

  FakeRank rank_;
  std::map<uint32_t, uint64_t> transfers_;
  std::map<uint32_t, uint64_t> sent_;
  std::unique_ptr<ReplayPlan> plan_;
  std::unique_ptr<ConnectionScript> script_;
};

TEST_F(ConnectionScriptTest, ConnectionsAreFoundByName) {
  Open(1, "stdin");
  Open(2, "connect 10.0.0.7:80 #1 of thread 0");
  EXPECT_EQ(Script().Find("connect 10.0.0.7:80 #1 of thread 0"), 1u);
  EXPECT_EQ(Script().Find("connect 10.0.0.7:80 #2 of thread 0"), kNone);
}

TEST_F(ConnectionScriptTest, AnAnswerIsThereOnceItsQuestionWasSent) {
  const uint32_t c = Open(1, "a");
  Sent(0, 1, "question");
  Received(0, 1, "answer");
  EXPECT_FALSE(Script().IsDue(c));
  EXPECT_EQ(Script().Send(c, Bytes("ques"), false).result, 4);
  EXPECT_FALSE(Script().IsDue(c));
  EXPECT_EQ(Script().Send(c, Bytes("tion"), false).difference, "");
  EXPECT_TRUE(Script().IsDue(c));
  EXPECT_EQ(Script().TakeReleased().back(), c);
}

TEST_F(ConnectionScriptTest, AChunkMayBeTakenInParts) {
  const uint32_t c = Open(1, "a");
  Received(0, 1, "answer");
  Received(0, 1, "");
  Script().Take(c, 4, false);
  EXPECT_EQ(Script().Taken(c), 4u);
  EXPECT_TRUE(Script().IsDue(c));
  EXPECT_EQ(Script().left(), 2u);
  Script().Take(c, 2, true);
  EXPECT_EQ(Script().Taken(c), 0u);
  EXPECT_TRUE(Script().OnlyEndsLeft(c));
  EXPECT_TRUE(Script().Next(c)->IsEnd());
  Script().Take(c, 0, true);
  EXPECT_EQ(Script().Next(c), nullptr);
  EXPECT_TRUE(Script().WasEnded(c));
  EXPECT_EQ(Script().left(), 0u);
}

TEST_F(ConnectionScriptTest, OneThreadReceivesInTheRecordedOrder) {
  const uint32_t a = Open(1, "a");
  const uint32_t b = Open(2, "b");
  Received(0, 2, "first");
  Received(0, 1, "second");
  Sent(0, 1, "thanks");
  Received(0, 2, "third");
  EXPECT_TRUE(Script().IsDue(b));
  EXPECT_FALSE(Script().IsDue(a));
  Script().Take(b, 5, true);
  EXPECT_FALSE(Script().IsDue(b));
  ASSERT_TRUE(Script().IsDue(a));
  Script().Take(a, 6, true);
  EXPECT_FALSE(Script().IsDue(b));
  Script().Send(a, Bytes("thanks"), false);
  EXPECT_TRUE(Script().IsDue(b));
}

TEST_F(ConnectionScriptTest, ThreadsDoNotWaitForEachOther) {
  const uint32_t a = Open(1, "a");
  const uint32_t b = Open(2, "b");
  Received(0, 1, "x");
  Received(1, 2, "y");
  EXPECT_TRUE(Script().IsDue(a));
  EXPECT_TRUE(Script().IsDue(b));
}

TEST_F(ConnectionScriptTest, OrderGivesWayWhereNothingHappens) {
  const uint32_t a = Open(1, "a");
  const uint32_t b = Open(2, "b");
  const uint32_t c = Open(3, "c");
  Sent(0, 2, "question");
  Received(0, 1, "first");
  Received(0, 3, "second");
  Received(0, 2, "third");
  // Enough has been sent for a and c, of which a came first; nothing is due.
  ASSERT_TRUE(Script().Relax());
  EXPECT_TRUE(Script().IsDue(a));
  EXPECT_FALSE(Script().IsDue(c));
  ASSERT_TRUE(Script().Relax());
  EXPECT_TRUE(Script().IsDue(c));
  EXPECT_FALSE(Script().Relax());
  EXPECT_FALSE(Script().IsDue(b));
  // A program that does not send what it did and waits is reported.
  EXPECT_NE(Script().Force(b).find("has sent 0 bytes and waits"), std::string::npos);
  EXPECT_TRUE(Script().IsDue(b));
}

TEST_F(ConnectionScriptTest, AClosedConnectionDelaysNoThread) {
  const uint32_t a = Open(1, "a");
  const uint32_t b = Open(2, "b");
  Received(0, 1, "never looked at");
  Received(0, 2, "x");
  EXPECT_FALSE(Script().IsDue(b));
  EXPECT_EQ(Script().Close(a), "");
  EXPECT_TRUE(Script().IsDue(b));
  EXPECT_EQ(Script().left(), 1u);
}

TEST_F(ConnectionScriptTest, OtherBytesAreNamedByTheirPlaceAndOnce) {
  const uint32_t c = Open(1, "a");
  Sent(0, 1, "hello");
  Sent(0, 1, "world");
  Sent(0, 1, "again");
  EXPECT_EQ(Script().Send(c, Bytes("hello"), false).difference, "");
  EXPECT_EQ(Script().Send(c, Bytes("wor"), false).difference, "");
  EXPECT_NE(Script().Send(c, Bytes("lx"), false).difference.find("in bytes 5 to 9"),
            std::string::npos);
  EXPECT_EQ(Script().Send(c, Bytes("xxxxx"), false).difference, "");
}

TEST_F(ConnectionScriptTest, ClosingEarlyIsADifference) {
  const uint32_t c = Open(1, "a");
  Sent(0, 1, "hello");
  Script().Send(c, Bytes("he"), false);
  EXPECT_NE(Script().Close(c).find("after sending 2 of the 5 bytes"), std::string::npos);
}

TEST_F(ConnectionScriptTest, SendsAreCutAndFailAsTheyDid) {
  const uint32_t c = Open(1, "a");
  Sent(0, 1, "hel");
  Sent(0, 1, "lo");
  Sent(0, 1, "", EPIPE);
  EXPECT_EQ(Script().Send(c, Bytes("hello"), true).result, 3);
  EXPECT_EQ(Script().Send(c, Bytes("lo"), true).result, 2);
  for (int i = 0; i < 2; ++i) {
    const ConnectionScript::Sent sent = Script().Send(c, Bytes("more"), true);
    EXPECT_EQ(sent.result, -1);
    EXPECT_EQ(sent.error, EPIPE);
  }
}

TEST_F(ConnectionScriptTest, AcceptedConnectionsAreTheListenersChunks) {
  format::ConnectionOpened bound;
  bound.connection = 1;
  bound.kind = static_cast<uint32_t>(format::ConnectionKind::kBound);
  bound.name = "bind #1 of thread 0";
  bound.type = SOCK_STREAM;
  rank_.Add(0, bound);
  const uint32_t first = Open(2, "accept 127.0.0.1:80 #1", 1);
  Received(0, 2, "hello");
  const uint32_t second = Open(3, "accept 127.0.0.1:80 #2", 1);
  ASSERT_TRUE(Script().IsDue(0));
  EXPECT_EQ(Script().Next(0)->accepted, first);
  Script().Take(0, 0, true);
  EXPECT_FALSE(Script().IsDue(0));
  Script().Take(first, 5, true);
  ASSERT_TRUE(Script().IsDue(0));
  EXPECT_EQ(Script().Next(0)->accepted, second);
}

TEST_F(ConnectionScriptTest, TransfersOfNoConnectionAreLeftOut) {
  Received(0, 9, "of an event that was lost");
  EXPECT_EQ(Script().left(), 0u);
}

TEST_F(ConnectionScriptTest, NothingIsServedBetweenProcessesOfTheRank) {
  const uint32_t family = Open(1, "connect unix a", 0, "1300 1200 1100");
  const uint32_t stranger = Open(2, "connect unix b", 0, "1400 1100");
  Received(0, 1, "live");
  Received(0, 2, "served");
  EXPECT_TRUE(Script().IsFamily(family));
  EXPECT_FALSE(Script().IsFamily(stranger));
  EXPECT_EQ(Script().Next(family), nullptr);
  EXPECT_TRUE(Script().IsDue(stranger));
  EXPECT_EQ(Script().left(), 1U);
}

}  // namespace
}  // namespace deja::replayer
