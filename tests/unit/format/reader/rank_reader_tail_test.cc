// RankReader and bundles on folders whose end is still in the tail of a process.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <map>
#include <string>
#include <thread>

#include "format/log/rank_log.h"
#include "format/pack/bundle_writer.h"
#include "format/reader/rank_reader.h"
#include "format/trace/trace.h"
#include "format/trace/verify.h"
#include "format/wire/message_codec.h"
#include "tests/support/sample_trace.h"

namespace deja::format {
namespace {

class RankReaderTailTest : public testing::Test {
 protected:
  void Start(size_t ring_bytes = 256 << 10) {
    RankLogOptions options;
    options.trace_dir = scratch_.path() + "/run.deja";
    options.tail_dir = scratch_.path();
    options.job_id = "0123456789abcdef0123456789abcdef";
    options.ring_bytes = ring_bytes;
    options.payload_bytes = 4 << 20;
    std::filesystem::create_directories(options.trace_dir);
    auto log = RankLog::Create(options);
    ASSERT_TRUE(log) << log.error().message;
    log_ = std::move(*log);
    ASSERT_TRUE(log_->BecomeRank(TraceHeader{}));
  }

  static bool Append(EventSink* sink, uint32_t thread, uint64_t seq) {
    const std::string text = "event " + std::to_string(seq);
    return sink->Append(AsBytes(EncodeEventToString({thread, seq, 1000 + seq}, Note{text})));
  }

  // Events of each thread; fails on a gap or a repetition.
  static std::map<uint32_t, uint64_t> CountInOrder(const RankReader& reader) {
    std::map<uint32_t, uint64_t> next;
    const auto cursor = reader.Events();
    while (const Event* event = cursor->Next()) {
      EXPECT_EQ(event->seq, next[event->thread]) << "thread " << event->thread;
      next[event->thread] = event->seq + 1;
    }
    EXPECT_EQ(cursor->damaged_batches(), 0u);
    return next;
  }

  samples::ScratchFolder scratch_;
  std::unique_ptr<RankLog> log_;
};

TEST_F(RankReaderTailTest, EventsOnlyInTheTailAreRead) {
  Start();
  EventSink* sink = log_->ClaimSink(0);
  for (uint64_t seq = 0; seq < 100; ++seq) ASSERT_TRUE(Append(sink, 0, seq));
  const std::string bytes(300'000, 'p');
  ASSERT_TRUE(log_->PutPayload(samples::HashOf(bytes), AsBytes(bytes), 4).kept);
  const auto reader = RankReader::Open(log_->folder()).value();
  EXPECT_EQ(CountInOrder(*reader), (std::map<uint32_t, uint64_t>{{0, 100}}));
  EXPECT_EQ(reader->totals().events, 100u);
  std::string back(reader->PayloadSize(samples::HashOf(bytes)).value_or(0), '\0');
  const std::span out(reinterpret_cast<std::byte*>(back.data()), back.size());
  ASSERT_TRUE(reader->ReadPayload(samples::HashOf(bytes), out));
  EXPECT_EQ(back, bytes);

  const auto without = RankReader::Open(log_->folder(), {.use_tail = false}).value();
  EXPECT_EQ(without->end().tail_events, 0u);
  EXPECT_EQ(without->totals().events + reader->end().tail_events, 100u);
}

TEST_F(RankReaderTailTest, ALiveRecordingIsReadWithoutGapOrRepetitionAtAnyMoment) {
  Start(64 << 10);
  std::atomic<uint64_t> appended[2] = {};
  std::atomic<bool> stop = false;
  // This many each: the file must not grow faster than it is read again and again.
  constexpr uint64_t kEachRound = 1000;
  std::atomic<uint64_t> allowed = kEachRound;
  std::vector<std::thread> writers;
  for (uint32_t thread = 0; thread < 2; ++thread) {
    writers.emplace_back([&, thread] {
      EventSink* sink = log_->ClaimSink(thread);
      for (uint64_t seq = 0; !stop; ++seq) {
        if (!Append(sink, thread, seq)) return;
        appended[thread].store(seq + 1);
        const bool waits = seq % 64 == 0 || seq >= allowed;
        do {
          if (waits) std::this_thread::sleep_for(std::chrono::milliseconds(1));
        } while (seq >= allowed && !stop);
      }
      log_->ReleaseSink(sink);
    });
  }
  while (appended[0] == 0 || appended[1] == 0) std::this_thread::yield();
  for (int round = 0; round < 20; ++round) {
    allowed += kEachRound;
    const uint64_t before[2] = {appended[0], appended[1]};
    const auto reader = RankReader::Open(log_->folder());
    if (!reader) {
      ADD_FAILURE() << reader.error().message;
      break;
    }
    std::map<uint32_t, uint64_t> seen = CountInOrder(**reader);
    EXPECT_GE(seen[0], before[0]);
    EXPECT_GE(seen[1], before[1]);
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  stop = true;
  for (std::thread& writer : writers) writer.join();
  log_->Finish();
  const auto reader = RankReader::Open(log_->folder()).value();
  EXPECT_EQ(reader->end().state, EndState::kCleanEnd);
  EXPECT_EQ(reader->end().tail_events, 0u);
  std::map<uint32_t, uint64_t> seen = CountInOrder(*reader);
  EXPECT_EQ(seen[0], appended[0]);
  EXPECT_EQ(seen[1], appended[1]);
}

TEST_F(RankReaderTailTest, ABundleHasWhatWasInTheTail) {
  Start();
  EventSink* sink = log_->ClaimSink(0);
  for (uint64_t seq = 0; seq < 50; ++seq) ASSERT_TRUE(Append(sink, 0, seq));
  log_->Flush();
  for (uint64_t seq = 50; seq < 80; ++seq) ASSERT_TRUE(Append(sink, 0, seq));
  const std::string bytes(70'000, 'q');
  ASSERT_TRUE(log_->PutPayload(samples::HashOf(bytes), AsBytes(bytes), 1).kept);
  const std::string zip = scratch_.path() + "/run.deja.zip";
  ASSERT_TRUE(WriteBundle(scratch_.path() + "/run.deja", zip));
  const auto trace = Trace::Open(zip).value();
  const RankReader* reader = trace->Rank(0).value();
  EXPECT_EQ(reader->end().state, EndState::kCleanEnd);
  EXPECT_EQ(CountInOrder(*reader), (std::map<uint32_t, uint64_t>{{0, 80}}));
  EXPECT_EQ(reader->PayloadSize(samples::HashOf(bytes)), bytes.size());
  EXPECT_TRUE(Verify(*trace, {}).value().problems.empty());
}

TEST_F(RankReaderTailTest, AMissingTailIsReported) {
  Start();
  EventSink* sink = log_->ClaimSink(0);
  for (uint64_t seq = 0; seq < 10; ++seq) ASSERT_TRUE(Append(sink, 0, seq));
  log_->Flush();
  const std::string copy = scratch_.path() + "/copy";
  std::filesystem::copy(log_->folder(), copy);
  log_->Finish();
  const auto reader = RankReader::Open(copy).value();
  EXPECT_EQ(reader->end().state, EndState::kTornTail);
  EXPECT_NE(reader->end().detail.find("does not exist"), std::string::npos) << reader->end().detail;
  EXPECT_EQ(CountInOrder(*reader), (std::map<uint32_t, uint64_t>{{0, 10}}));
}

}  // namespace
}  // namespace deja::format
