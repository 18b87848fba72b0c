// Python's collector runs where it ran, against a recording that is written here.
#include "replayer/meet/collections.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "api/libc_table.h"
#include "replayer/meet/stillness.h"
#include "tests/unit/replayer/written_rank.h"

namespace deja::replayer {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::vector<int> g_collected;  // generations

class CollectionsTest : public testing::Test {
 protected:
  CollectionsTest() {
    g_collected.clear();
    preload::Self().engine_state = nullptr;  // of another test's session
    Stillness::SetHaste(100);
  }
  ~CollectionsTest() override { Stillness::SetHaste(0); }

  static void Meet(WrittenRank::Thread& thread, uint64_t time_ns = 0) {
    format::Input input;
    input.api = static_cast<uint32_t>(api::LibcApi::ksem_wait);
    input.key = 5;
    thread.Add(input, time_ns);
  }
  static void Begins(WrittenRank::Thread& thread, uint32_t generation, uint64_t time_ns = 0) {
    thread.Add(format::GarbageCollection{generation, false, true}, time_ns);
  }
  static void Ends(WrittenRank::Thread& thread, uint32_t generation, uint64_t time_ns = 0,
                   uint64_t lasted_ns = 2) {
    thread.Add(format::GarbageCollection{generation, true, true, lasted_ns}, time_ns);
  }
  // One that finalizes something that meets another process.
  static void Acts(WrittenRank::Thread& thread, uint32_t generation) {
    Begins(thread, generation);
    Meet(thread);
    Ends(thread, generation);
  }

  // By thread "0.1", 5 us after the beginning.
  void RecordActing() {
    WrittenRank::Thread thread = rank_.Begin("0.1");
    Begins(thread, 0, 5000);
    Meet(thread, 5001);
    Ends(thread, 0, 5002);
  }

  bool Open() {
    session_ = rank_.Open();
    collections_ = std::make_unique<Collections>(*session_);
    return collections_->Keep([](int generation) { g_collected.push_back(generation); });
  }
  // The thread meets another process.
  void Meet(ThreadState& thread) {
    collections_->GiveDue(thread, Collections::Place::kMeeting);
    session_->progress().ConsumeMeeting(thread.recorded);
  }

  WrittenRank rank_;
  Session* session_ = nullptr;
  std::unique_ptr<Collections> collections_;
};

TEST_F(CollectionsTest, OneThatActsComesAfterWhatCameBeforeIt) {
  {
    WrittenRank::Thread thread = rank_.Begin("0");
    Meet(thread);
    Meet(thread);
    Acts(thread, 1);
    Meet(thread);
  }
  ASSERT_TRUE(Open());
  ThreadState& thread = ThreadNamed(*session_, "0");
  Meet(thread);
  Meet(thread);
  EXPECT_THAT(g_collected, IsEmpty());
  Meet(thread);  // what was finalized
  EXPECT_THAT(g_collected, ElementsAre(1));
  Meet(thread);
  EXPECT_THAT(g_collected, ElementsAre(1));
}

TEST_F(CollectionsTest, OthersComeOneEventEarlyAndTheOldestAlone) {
  {
    WrittenRank::Thread thread = rank_.Begin("0");
    Meet(thread);
    Meet(thread);
    Begins(thread, 0);
    Begins(thread, 2);
    Begins(thread, 1);
    Meet(thread);
    Acts(thread, 0);
  }
  ASSERT_TRUE(Open());
  ThreadState& thread = ThreadNamed(*session_, "0");
  Meet(thread);
  EXPECT_THAT(g_collected, IsEmpty());
  Meet(thread);
  EXPECT_THAT(g_collected, ElementsAre(2));
  Meet(thread);
  EXPECT_THAT(g_collected, ElementsAre(2));
  Meet(thread);
  EXPECT_THAT(g_collected, ElementsAre(2, 0));
}

TEST_F(CollectionsTest, OneThatTheProgramAsksForIsNotMadeTwice) {
  {
    WrittenRank::Thread thread = rank_.Begin("0");
    Meet(thread);
    Acts(thread, 2);
    Acts(thread, 2);
  }
  ASSERT_TRUE(Open());
  ThreadState& thread = ThreadNamed(*session_, "0");
  Meet(thread);
  collections_->OnOwn(thread, 1);  // not that one
  collections_->OnOwn(thread, 2);
  Meet(thread);
  EXPECT_THAT(g_collected, IsEmpty());
  Meet(thread);
  EXPECT_THAT(g_collected, ElementsAre(2));
}

TEST_F(CollectionsTest, NothingIsKeptWhereNothingActs) {
  {
    WrittenRank::Thread thread = rank_.Begin("0");
    Begins(thread, 2);
    Meet(thread);
    Begins(thread, 2);
    Ends(thread, 2);  // it read a clock
  }
  EXPECT_FALSE(Open());
  Meet(ThreadNamed(*session_, "0"));
  EXPECT_THAT(g_collected, IsEmpty());
}

TEST_F(CollectionsTest, NothingIsKeptWhereThereIsOneThread) {
  {
    WrittenRank::Thread thread = rank_.Begin("0");
    thread.Add(format::GarbageCollection{2, false, false});
    Meet(thread);
    thread.Add(format::GarbageCollection{2, true, false});
  }
  EXPECT_FALSE(Open());
}

TEST_F(CollectionsTest, ThreadsThatWereLaterWaitForIt) {
  RecordActing();
  {
    WrittenRank::Thread thread = rank_.Begin("0.2");
    Meet(thread, 4000);
    Meet(thread, 6000);
  }
  ASSERT_TRUE(Open());
  static std::atomic<int> made{0};
  static int made_then = 0;
  made = 0;
  ASSERT_TRUE(collections_->Keep([](int) { made_then = made; }));
  std::thread first([&] { Meet(ThreadNamed(*session_, "0.1")); });
  std::thread second([&] {
    ThreadState& thread = ThreadNamed(*session_, "0.2");
    for (int i = 0; i < 2; ++i) {
      Meet(thread);
      ++made;
    }
  });
  first.join();
  second.join();
  EXPECT_LE(made_then, 1);  // the second one waits
  EXPECT_EQ(made.load(), 2);
}

// Its beginning is not there, since an older one began after the same events.
TEST_F(CollectionsTest, TheEndSaysWhenItBegan) {
  {
    WrittenRank::Thread thread = rank_.Begin("0.1");
    Begins(thread, 1, 1000);
    Meet(thread, 5001);
    Ends(thread, 0, 5002, 2);
  }
  {
    WrittenRank::Thread thread = rank_.Begin("0.2");
    Meet(thread, 4000);
  }
  ASSERT_TRUE(Open());
  ASSERT_EQ(session_->plan().acting_collections().size(), 1U);
  EXPECT_EQ(session_->plan().acting_collections()[0].time_ns, 5000U);
  std::thread([&] { Meet(ThreadNamed(*session_, "0.2")); }).join();
  std::thread([&] { Meet(ThreadNamed(*session_, "0.1")); }).join();
  EXPECT_THAT(g_collected, ElementsAre(1));
}

TEST_F(CollectionsTest, AThreadThatHasEndedIsNotWaitedFor) {
  RecordActing();
  {
    WrittenRank::Thread thread = rank_.Begin("0.2");
    Meet(thread, 6000);
  }
  ASSERT_TRUE(Open());
  std::thread([&] { collections_->EndThread(ThreadNamed(*session_, "0.1")); }).join();
  std::thread([&] { Meet(ThreadNamed(*session_, "0.2")); }).join();
  EXPECT_THAT(g_collected, IsEmpty());
}

}  // namespace
}  // namespace deja::replayer
