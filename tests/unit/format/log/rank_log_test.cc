#include "format/log/rank_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <thread>

#include "format/repair/recovery.h"
#include "format/tail/clock_run.h"
#include "format/tail/tail_reader.h"
#include "format/wire/frame_format.h"
#include "format/wire/message_codec.h"
#include "tests/unit/format/log/rank_scan.h"

namespace deja::format {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class RankLogTest : public ::testing::Test {
 protected:
  RankLogOptions Options() {
    RankLogOptions options;
    options.trace_dir = dir_.path();
    options.tail_dir = tails_.path();
    options.job_id = "00112233445566778899aabbccddeeff";
    options.ring_bytes = 64 << 10;
    options.payload_bytes = 1 << 20;
    return options;
  }
  void Make() { Make(Options()); }
  void Make(const RankLogOptions& options) {
    auto log = RankLog::Create(options);
    ASSERT_TRUE(log) << log.error().message;
    log_ = std::move(*log);
  }
  void BecomeRank(uint32_t rank) {
    TraceHeader header;
    header.rank = rank;
    const Status done = log_->BecomeRank(header);
    ASSERT_TRUE(done) << done.error().message;
  }
  static bool Append(EventSink* sink, uint32_t thread, uint64_t seq, const std::string& text) {
    return sink->Append(AsBytes(NoteEvent(thread, seq, text)));
  }
  bool Put(const std::string& bytes) {
    return log_->PutPayload(HashOf(bytes), AsBytes(bytes), 4).kept;
  }

  TempDir dir_;
  TempDir tails_;
  std::unique_ptr<RankLog> log_;
};

TEST_F(RankLogTest, AppendedEventsAreInTheFinishedFolder) {
  Make();
  EventSink* sink = log_->ClaimSink(0);
  EXPECT_TRUE(Append(sink, 0, 0, "before the rank is known"));
  const std::string bytes = SomeBytes(1, 5000);
  EXPECT_TRUE(Put(bytes));
  BecomeRank(3);
  EXPECT_TRUE(Append(sink, 0, 1, "after"));
  EXPECT_EQ(log_->folder(), dir_ / "rank-00003");
  log_->Finish();

  const RankScan scan = ScanRank(dir_ / "rank-00003", false);
  EXPECT_EQ(scan.problem, "");
  EXPECT_TRUE(scan.finished);
  EXPECT_EQ(scan.rank, 3u);
  EXPECT_THAT(scan.producer, HasSubstr("deja "));
  EXPECT_THAT(scan.Notes(0), ElementsAre("before the rank is known", "after"));
  ASSERT_EQ(scan.payloads.size(), 1u);
  EXPECT_EQ(scan.payloads.at(HashOf(bytes)), bytes);
  EXPECT_EQ(scan.footer.events, 2u);
  EXPECT_EQ(scan.footer.payloads, 1u);
  EXPECT_EQ(scan.footer.payload_bytes, 5000u);
  EXPECT_EQ(scan.index_events, 2u);
  EXPECT_EQ(scan.index_payloads, 1u);
  EXPECT_THAT(ListDir(tails_.path()), IsEmpty());
  EXPECT_THAT(ListDir(dir_.path()), ElementsAre("rank-00003"));
}

// As a thread puts a reading there.
void Tick(EventSink* sink, uint32_t thread, uint64_t seq, int64_t value) {
  ClockArea& area = *sink->clocks();
  const uint32_t n = area.count.load();
  if (n == 0) {
    area.thread = thread;
    area.seq = seq;
  }
  area.sources[n] = static_cast<uint8_t>(ClockSource::kMonotonic);
  area.values[n] = value;
  area.count.store(n + 1);
}

std::vector<EventKind> KindsOf(const RankScan& scan) {
  std::vector<EventKind> kinds;
  for (const ScannedEvent& event : scan.events) kinds.push_back(event.kind);
  return kinds;
}

TEST_F(RankLogTest, ClockReadingsAreAnEventOnceTheyAreFlushed) {
  Make();
  BecomeRank(0);
  EventSink* sink = log_->ClaimSink(0);
  sink->FlushClocks();  // there are none
  Tick(sink, 0, 0, 5);
  Tick(sink, 0, 0, 6);
  sink->FlushClocks();
  EXPECT_EQ(sink->clocks()->count.load(), 0u);
  EXPECT_TRUE(Append(sink, 0, 1, "between"));
  Tick(sink, 0, 2, 7);
  log_->Finish();
  const RankScan scan = ScanRank(dir_ / "rank-00000", false);
  EXPECT_EQ(scan.problem, "");
  EXPECT_THAT(KindsOf(scan),
              ElementsAre(EventKind::kClockRun, EventKind::kNote, EventKind::kClockRun));
  EXPECT_EQ(scan.footer.events, 3u);
  // A finished log takes no more.
  sink->FlushClocks();
  EXPECT_EQ(ScanRank(dir_ / "rank-00000", false).events.size(), 3u);
}

TEST_F(RankLogTest, ClockReadingsOfADeadProcessAreInItsTailOnce) {
  for (const bool interrupted : {false, true}) {
    const pid_t child = fork();
    if (child == 0) {
      Make();
      BecomeRank(interrupted ? 1 : 0);
      EventSink* sink = log_->ClaimSink(0);
      Append(sink, 0, 0, "first");
      Tick(sink, 0, 1, 5);
      if (interrupted) {  // as if it had died before the area was emptied
        ClockArea& area = *sink->clocks();
        sink->FlushClocks();
        area.count.store(1 | ClockArea::kFlushing);
      }
      kill(getpid(), SIGKILL);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    const std::string folder = dir_ / (interrupted ? "rank-00001" : "rank-00000");
    for (const bool recovered : {false, true}) {
      if (recovered) {
        ASSERT_TRUE(RecoverRank(folder, {}));
      }
      const RankScan scan = ScanRank(folder, !recovered);
      EXPECT_EQ(scan.problem, "");
      EXPECT_THAT(KindsOf(scan), ElementsAre(EventKind::kNote, EventKind::kClockRun));
    }
  }
}

// Several `deja record` of one job sweep the same folders when the last ranks end.
TEST_F(RankLogTest, SweepsOfOneFolderComeOneAfterTheOther) {
  Make();
  BecomeRank(0);
  EventSink* sink = log_->ClaimSink(0);
  for (uint64_t seq = 0; seq < 500; ++seq) {
    ASSERT_TRUE(Append(sink, 0, seq, SomeBytes(seq, 100)));
    ASSERT_TRUE(Put(SomeBytes(seq, 200)));
  }
  log_->Finish();
  const std::filesystem::path folder = dir_ / "rank-00000";
  // As a process leaves it that dies while it finishes.
  const std::filesystem::path events = folder / kEventsFile;
  std::filesystem::resize_file(events, std::filesystem::file_size(events) - 10);
  ProcessFate fate;
  fate.known = true;
  for (int round = 0; round < 200; ++round) {
    const TempDir copy;
    std::filesystem::copy(folder, copy.path(), std::filesystem::copy_options::recursive);
    std::thread knows([&] { EXPECT_TRUE(RecoverRank(copy.path(), fate)); });
    std::thread does_not([&] { EXPECT_TRUE(RecoverRank(copy.path(), {})); });
    knows.join();
    does_not.join();
    const RankScan scan = ScanRank(copy.path(), false);
    ASSERT_EQ(scan.problem, "") << "round " << round;
    ASSERT_TRUE(scan.finished);
  }
}

TEST_F(RankLogTest, AProcessThatIsNoRankLeavesNothing) {
  Make();
  EventSink* sink = log_->ClaimSink(0);
  for (uint64_t seq = 0; seq < 5000; ++seq) ASSERT_TRUE(Append(sink, 0, seq, SomeBytes(seq, 100)));
  EXPECT_THAT(ListDir(dir_.path()), ::testing::SizeIs(1)) << "it had to spill";
  log_->Finish();
  EXPECT_THAT(ListDir(dir_.path()), IsEmpty());
  EXPECT_THAT(ListDir(tails_.path()), IsEmpty());
  EXPECT_FALSE(Append(sink, 0, 5000, "too late"));
}

TEST_F(RankLogTest, EventsSpilledBeforeTheRankWasKnownAreKeptInOrder) {
  Make();
  EventSink* sink = log_->ClaimSink(0);
  uint64_t seq = 0;
  std::vector<std::string> expected;
  const auto append = [&] {
    expected.push_back(SomeBytes(seq, 200));
    ASSERT_TRUE(Append(sink, 0, seq++, expected.back()));
  };
  std::vector<std::string> payloads;
  while (seq < 3000) append();
  for (int i = 0; i < 12; ++i) {
    payloads.push_back(SomeBytes(1000 + i, 300000));
    ASSERT_TRUE(Put(payloads.back()));
  }
  BecomeRank(0);
  while (seq < 4000) append();
  log_->Finish();
  const RankScan scan = ScanRank(dir_ / "rank-00000", false);
  EXPECT_EQ(scan.problem, "");
  EXPECT_TRUE(scan.finished);
  EXPECT_EQ(scan.Notes(0), expected);
  for (const std::string& bytes : payloads) EXPECT_EQ(scan.payloads.count(HashOf(bytes)), 1u);
  EXPECT_EQ(scan.index_payloads, payloads.size());
  EXPECT_THAT(ListDir(dir_ / "rank-00000"), ElementsAre("events.deja", "payloads.deja"));
}

TEST_F(RankLogTest, ARestartedRankGetsTheNextAttempt) {
  for (uint32_t attempt = 0; attempt < 3; ++attempt) {
    Make();
    BecomeRank(7);
    log_->Finish();
    const std::string name = attempt == 0 ? "rank-00007" : "rank-00007." + std::to_string(attempt);
    EXPECT_EQ(log_->folder(), dir_ / name);
    EXPECT_EQ(ScanRank(dir_ / name, false).attempt, attempt);
  }
}

TEST_F(RankLogTest, SamePayloadIsStoredOnce) {
  Make();
  BecomeRank(0);
  const std::string bytes = SomeBytes(5, 3000);
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(Put(bytes));
  log_->Flush();
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(Put(bytes));
  EXPECT_EQ(log_->counters().payloads, 1u);
  log_->Finish();
  EXPECT_EQ(ScanRank(log_->folder(), false).payload_chunks, 1u);
}

TEST_F(RankLogTest, PayloadsOfAllSizesComeBack) {
  Make();
  BecomeRank(0);
  std::vector<std::string> payloads = {""};
  for (const size_t size : {1, 63, 64, 65, 4096, 262143, 1 << 20, (5 << 20) + 17}) {
    payloads.push_back(SomeBytes(size, size));
  }
  for (const std::string& bytes : payloads) EXPECT_TRUE(Put(bytes)) << bytes.size();
  log_->Finish();
  const RankScan scan = ScanRank(log_->folder(), false);
  EXPECT_EQ(scan.problem, "");
  for (const std::string& bytes : payloads) {
    const auto found = scan.payloads.find(HashOf(bytes));
    ASSERT_NE(found, scan.payloads.end()) << bytes.size();
    EXPECT_EQ(found->second, bytes);
  }
  EXPECT_EQ(scan.footer.payloads, payloads.size());
}

TEST_F(RankLogTest, ManyThreadsKeepEachTheirOrder) {
  Make();
  BecomeRank(0);
  constexpr uint32_t kThreads = 8;
  constexpr uint64_t kEvents = 3000;
  std::vector<std::thread> threads;
  for (uint32_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([this, t] {
      EventSink* sink = log_->ClaimSink(t);
      for (uint64_t seq = 0; seq < kEvents; ++seq) {
        EXPECT_TRUE(Append(sink, t, seq, SomeBytes(seq, seq % 300)));
        if (seq % 16 == 0) {
          EXPECT_TRUE(Put(SomeBytes(seq % 64, 5000 + seq % 64)));
        }
      }
      log_->ReleaseSink(sink);
    });
  }
  for (std::thread& thread : threads) thread.join();
  log_->Finish();
  const RankScan scan = ScanRank(log_->folder(), false);
  EXPECT_EQ(scan.problem, "");
  EXPECT_EQ(scan.events.size(), kThreads * kEvents);
  EXPECT_EQ(log_->counters().events, kThreads * kEvents);
  for (uint64_t i = 0; i < 64; i += 16) {
    EXPECT_EQ(scan.payloads.count(HashOf(SomeBytes(i, 5000 + i))), 1u);
  }
}

TEST_F(RankLogTest, MoreThreadsThanRingsShareOne) {
  Make();
  BecomeRank(0);
  std::vector<EventSink*> sinks;
  for (uint32_t t = 0; t < kTailRings + 40; ++t) sinks.push_back(log_->ClaimSink(t));
  for (uint64_t seq = 0; seq < 50; ++seq) {
    for (uint32_t t = 0; t < sinks.size(); ++t) ASSERT_TRUE(Append(sinks[t], t, seq, "x"));
  }
  log_->Finish();
  const RankScan scan = ScanRank(log_->folder(), false);
  EXPECT_EQ(scan.problem, "");
  EXPECT_EQ(scan.events.size(), sinks.size() * 50);
}

TEST_F(RankLogTest, RingsOfEndedThreadsAreReused) {
  Make();
  BecomeRank(0);
  EventSink* first = log_->ClaimSink(0);
  EXPECT_TRUE(Append(first, 0, 0, "a"));
  log_->ReleaseSink(first);
  EventSink* second = log_->ClaimSink(1);
  EXPECT_NE(second, first) << "what thread 0 appended has not been written yet";
  EXPECT_EQ(log_->ClaimSink(0), first) << "a thread that comes back goes on in its own ring";
  log_->ReleaseSink(first);
  log_->Flush();
  EXPECT_EQ(log_->ClaimSink(2), first);
}

TEST_F(RankLogTest, EventsThatAreTooLargeAreRefusedAndCounted) {
  Make();
  BecomeRank(0);
  EventSink* sink = log_->ClaimSink(0);
  EXPECT_FALSE(sink->Append(std::vector<std::byte>(kMaxEventBytes + 1)));
  EXPECT_FALSE(sink->Append({}));
  EXPECT_EQ(log_->counters().events_lost, 2u);
  log_->Finish();
  const RankScan scan = ScanRank(log_->folder(), false);
  EXPECT_EQ(scan.footer.events_lost, 2u);
  ASSERT_EQ(scan.events.size(), 1u);
  EXPECT_EQ(scan.events[0].kind, EventKind::kDegraded);
}

TEST_F(RankLogTest, DropPolicyDropsPayloadsAndSaysSo) {
  RankLogOptions options = Options();
  options.on_pressure = PressurePolicy::kDropPayload;
  Make(options);
  EventSink* sink = log_->ClaimSink(0);
  // Larger than the arena: there can be no room at once.
  EXPECT_FALSE(Put(SomeBytes(1, 2 << 20)));
  EXPECT_TRUE(Put(SomeBytes(2, 2000)));
  BecomeRank(0);
  EXPECT_TRUE(Append(sink, 0, 0, "order is never dropped"));
  log_->Finish();
  const RankLogCounters counters = log_->counters();
  EXPECT_EQ(counters.payloads_lost, 1u);
  EXPECT_EQ(counters.payload_bytes_lost, 2u << 20);
  const RankScan scan = ScanRank(log_->folder(), false);
  EXPECT_EQ(scan.problem, "");
  EXPECT_EQ(scan.footer.payloads_lost, 1u);
  EXPECT_EQ(scan.payloads.size(), 1u);
  EXPECT_THAT(scan.Notes(0), ElementsAre("order is never dropped"));
}

TEST_F(RankLogTest, EmergencyEventsComeLast) {
  Make();
  EventSink* sink = log_->ClaimSink(0);
  EXPECT_TRUE(log_->AppendEmergency(AsBytes(NoteEvent(0, 2, "crash"))));
  EXPECT_TRUE(Append(sink, 0, 0, "a"));
  BecomeRank(0);
  EXPECT_TRUE(Append(sink, 0, 1, "b"));
  log_->Finish();
  const RankScan scan = ScanRank(log_->folder(), false);
  EXPECT_EQ(scan.problem, "");
  EXPECT_THAT(scan.Notes(0), ElementsAre("a", "b", "crash"));
}

TEST_F(RankLogTest, EmergencySlotsRunOut) {
  Make();
  int kept = 0;
  for (uint64_t i = 0; i < 100; ++i) kept += log_->AppendEmergency(AsBytes(NoteEvent(0, i, "x")));
  EXPECT_EQ(kept, static_cast<int>(kTailEmergencySlots));
  EXPECT_FALSE(log_->AppendEmergency(std::vector<std::byte>(kMaxEmergencyBytes + 1)));
}

TEST_F(RankLogTest, TheTailOfALivingProcessCanBeRead) {
  Make();
  BecomeRank(0);
  EventSink* sink = log_->ClaimSink(0);
  ASSERT_TRUE(Append(sink, 0, 0, "written"));
  log_->Flush();
  ASSERT_TRUE(Append(sink, 0, 1, "in the tail"));
  const std::string bytes = SomeBytes(1, 999);
  ASSERT_TRUE(Put(bytes));
  const RankScan scan = ScanRank(log_->folder(), true);
  EXPECT_EQ(scan.problem, "");
  EXPECT_FALSE(scan.finished);
  EXPECT_THAT(scan.Notes(0), ElementsAre("written", "in the tail"));
  EXPECT_EQ(scan.payloads.count(HashOf(bytes)), 1u);
  auto tail = TailReader::Open(scan.tail_path, scan.tail_id);
  ASSERT_TRUE(tail);
  EXPECT_TRUE((*tail)->WriterAlive());
  EXPECT_EQ((*tail)->identity().state, TailState::kRank);
}

class ForkTest : public RankLogTest, public ::testing::WithParamInterface<bool> {};
INSTANTIATE_TEST_SUITE_P(RankOrNot, ForkTest, ::testing::Bool());

TEST_P(ForkTest, AChildForgetsTheLogWithoutTouchingIt) {
  Make();
  if (GetParam()) BecomeRank(0);
  EventSink* sink = log_->ClaimSink(0);
  ASSERT_TRUE(Append(sink, 0, 0, "parent"));
  const pid_t child = fork();
  if (child == 0) {
    log_->AbandonInChild();
    const bool took = Append(sink, 0, 1, "child") || Put("child") ||
                      log_->AppendEmergency(AsBytes(NoteEvent(0, 1, "child"))) ||
                      log_->BecomeRank({}).has_value() || log_->counters().events != 0;
    log_->Flush();
    log_->Finish();
    // The child's own log.
    auto own = RankLog::Create(Options());
    const bool made = own && (*own)->ClaimSink(0)->Append(AsBytes(NoteEvent(0, 0, "own")));
    if (made) (*own)->Finish();
    _exit(took || !made ? 1 : 0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  ASSERT_TRUE(Append(sink, 0, 1, "parent again"));
  if (!GetParam()) BecomeRank(0);
  log_->Finish();
  const RankScan scan = ScanRank(log_->folder(), false);
  EXPECT_EQ(scan.problem, "");
  EXPECT_TRUE(scan.finished);
  EXPECT_THAT(scan.Notes(0), ElementsAre("parent", "parent again"));
}

TEST_F(RankLogTest, OnlyTheLogWritesAfterFinish) {
  Make();
  BecomeRank(0);
  EventSink* sink = log_->ClaimSink(0);
  log_->Finish();
  log_->Finish();
  EXPECT_FALSE(Append(sink, 0, 0, "late"));
  EXPECT_FALSE(Put("late"));
  EXPECT_FALSE(log_->AppendEmergency(AsBytes(NoteEvent(0, 0, "late"))));
  EXPECT_FALSE(log_->BecomeRank({}));
  EXPECT_EQ(ScanRank(log_->folder(), true).events.size(), 0u);
}

}  // namespace
}  // namespace deja::format
