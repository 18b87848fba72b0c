// A process in which no thread can be made: the threads that need room make it themselves.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <pthread.h>

#include <atomic>
#include <cerrno>

#include "format/log/rank_log.h"
#include "format/wire/message_codec.h"
#include "tests/unit/format/log/rank_scan.h"

static std::atomic<int> g_refused{0};

extern "C" int pthread_create(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*) {
  ++g_refused;
  return EAGAIN;
}

namespace deja::format {
namespace {

TEST(NoThreadTest, EverythingIsRecordedAllTheSame) {
  TempDir dir;
  TempDir tails;
  RankLogOptions options;
  options.trace_dir = dir.path();
  options.tail_dir = tails.path();
  options.ring_bytes = 64 << 10;
  options.payload_bytes = 256 << 10;
  auto log = RankLog::Create(options);
  ASSERT_TRUE(log);
  EventSink* sink = (*log)->ClaimSink(0);
  std::vector<std::string> expected;
  for (uint64_t seq = 0; seq < 4000; ++seq) {
    if (seq == 1000) {
      ASSERT_TRUE((*log)->BecomeRank({}));
    }
    expected.push_back(SomeBytes(seq, 100));
    ASSERT_TRUE(sink->Append(AsBytes(NoteEvent(0, seq, expected.back()))));
    if (seq % 100 == 0) {
      const std::string bytes = SomeBytes(seq, 50000);
      ASSERT_TRUE((*log)->PutPayload(HashOf(bytes), AsBytes(bytes), 1).kept);
    }
  }
  (*log)->Finish();
  EXPECT_GT(g_refused, 0);
  const RankScan scan = ScanRank(dir / "rank-00000", false);
  EXPECT_EQ(scan.problem, "");
  EXPECT_TRUE(scan.finished);
  EXPECT_EQ(scan.Notes(0), expected);
  EXPECT_EQ(scan.payloads.size(), 40u);
}

}  // namespace
}  // namespace deja::format
