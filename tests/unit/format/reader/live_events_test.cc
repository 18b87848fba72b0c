// LiveEvents: each event of a recording that goes on is handed out once, in its thread's order.
#include "format/reader/live_events.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "format/log/rank_log.h"
#include "format/wire/message_codec.h"
#include "tests/support/sample_trace.h"

namespace deja::format {
namespace {

class LiveEventsTest : public testing::Test {
 protected:
  void Start() {
    RankLogOptions options;
    options.trace_dir = scratch_.path() + "/run.deja";
    options.tail_dir = scratch_.path();
    options.job_id = "0123456789abcdef0123456789abcdef";
    std::filesystem::create_directories(options.trace_dir);
    log_ = std::move(*RankLog::Create(options));
    ASSERT_TRUE(log_->BecomeRank(TraceHeader{}));
    live_ = std::move(*LiveEvents::Open(log_->folder()));
  }

  void Append(uint32_t thread, uint64_t from, uint64_t to) {
    EventSink*& sink = sinks_[thread];
    if (sink == nullptr) sink = log_->ClaimSink(thread);
    for (uint64_t seq = from; seq < to; ++seq)
      ASSERT_TRUE(sink->Append(AsBytes(EncodeEventToString({thread, seq, 1000 + seq}, Note{"n"}))));
  }

  // How many came of each thread; fails on a gap or a repetition.
  std::map<uint32_t, uint64_t> Poll() {
    std::map<uint32_t, uint64_t> came;
    const Status polled = live_->Poll([&](const Event& event) {
      if (event.thread == kLogThread) return;
      EXPECT_EQ(event.seq, next_[event.thread]) << "thread " << event.thread;
      next_[event.thread] = event.seq + 1;
      ++came[event.thread];
    });
    EXPECT_TRUE(polled) << (polled ? "" : polled.error().message);
    return came;
  }

  using Counts = std::map<uint32_t, uint64_t>;
  samples::ScratchFolder scratch_;
  std::unique_ptr<RankLog> log_;
  std::unique_ptr<LiveEvents> live_;
  std::map<uint32_t, EventSink*> sinks_;
  Counts next_;
};

TEST_F(LiveEventsTest, EventsInTheTailComeOnceAlsoWhenTheyAreDrainedLater) {
  Start();
  Append(0, 0, 10);
  Append(1, 0, 5);
  EXPECT_EQ(Poll(), (Counts{{0, 10}, {1, 5}}));
  EXPECT_TRUE(live_->has_live_tail());
  EXPECT_EQ(Poll(), Counts{});
  log_->Flush();
  EXPECT_EQ(Poll(), Counts{});
  Append(0, 10, 12);
  EXPECT_EQ(Poll(), (Counts{{0, 2}}));
}

TEST_F(LiveEventsTest, WhatIsInTheFileAndInTheTailIsPutTogether) {
  Start();
  Append(0, 0, 10);
  log_->Flush();
  Append(0, 10, 15);
  EXPECT_EQ(Poll(), (Counts{{0, 15}}));
}

TEST_F(LiveEventsTest, AFinishedRecordingHasAnEnd) {
  Start();
  Append(0, 0, 4);
  EXPECT_EQ(Poll(), (Counts{{0, 4}}));
  EXPECT_FALSE(live_->is_finished());
  log_->Finish();
  Poll();
  EXPECT_TRUE(live_->is_finished());
  EXPECT_FALSE(live_->has_live_tail());
}

TEST_F(LiveEventsTest, AFileThatAnotherRunHasReplacedIsAnError) {
  Start();
  Append(0, 0, 1000);
  log_->Flush();
  Poll();
  std::filesystem::resize_file(log_->folder() + "/events.deja", 20);
  EXPECT_FALSE(live_->Poll([](const Event&) {}));
}

TEST_F(LiveEventsTest, NoRecordingYetIsAnError) {
  EXPECT_FALSE(LiveEvents::Open(scratch_.path() + "/rank-00000"));
}

}  // namespace
}  // namespace deja::format
