// The disk refuses: at every single write, once or for good; by limits; by being full or not there.
// The program must never notice, the user sees one line, and the trace says what it lacks.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>

#include "common/os/file.h"
#include "format/log/rank_log.h"
#include "format/reader/rank_reader.h"
#include "format/repair/recovery.h"
#include "format/wire/message_codec.h"
#include "tests/unit/format/log/rank_scan.h"

namespace deja::format {
namespace {

using ::testing::HasSubstr;

// The n-th write of all files fails, and the ones behind it if `for_good`.
std::atomic<int> g_writes{0};
int g_fail_at = 0;
bool g_fail_for_good = false;

class FailingFile final : public AppendFile {
 public:
  explicit FailingFile(std::unique_ptr<AppendFile> file) : file_(std::move(file)) {}
  Status Append(std::span<const std::byte> first, std::span<const std::byte> second) override {
    const int n = ++g_writes;
    if (n == g_fail_at || (g_fail_for_good && n > g_fail_at)) {
      // Part of it gets there.
      (void)file_->Append(first.first(first.size() / 2), {});
      return FailErrno("cannot write the file of the test", ENOSPC);
    }
    return file_->Append(first, second);
  }
  Status Truncate(uint64_t size) override { return file_->Truncate(size); }
  Status Sync() override { return file_->Sync(); }
  [[nodiscard]] uint64_t size() const override { return file_->size(); }

 private:
  std::unique_ptr<AppendFile> file_;
};

std::unique_ptr<AppendFile> MakeFailing(std::unique_ptr<AppendFile> file) {
  return std::make_unique<FailingFile>(std::move(file));
}

// What the process writes to stderr meanwhile.
class CapturedStderr {
 public:
  CapturedStderr() {
    fflush(stderr);
    saved_ = dup(STDERR_FILENO);
    char name[] = "/tmp/deja-test-stderr-XXXXXX";
    const int file = mkstemp(name);
    path_ = name;
    dup2(file, STDERR_FILENO);
    close(file);
  }
  ~CapturedStderr() {
    Restore();
    unlink(path_.c_str());
  }
  std::vector<std::string> Lines() {
    Restore();
    std::ifstream in(path_);
    std::vector<std::string> lines;
    for (std::string line; std::getline(in, line);) lines.push_back(line);
    return lines;
  }

 private:
  void Restore() {
    if (saved_ < 0) return;
    dup2(saved_, STDERR_FILENO);
    close(saved_);
    saved_ = -1;
  }
  int saved_;
  std::string path_;
};

class FailingDiskTest : public ::testing::Test {
 protected:
  RankLogOptions Options() {
    RankLogOptions options;
    options.trace_dir = dir_.path();
    options.tail_dir = tails_.path();
    options.job_id = "ab";
    options.ring_bytes = 64 << 10;
    options.payload_bytes = 1 << 20;
    return options;
  }

  struct Accepted {
    uint64_t events = 0;
    uint64_t payloads = 0;
    bool became_rank = false;
    RankLogCounters counters;
    std::vector<std::string> lines;
  };
  static constexpr uint64_t kEvents = 1500;

  // Appends and puts, whatever happens. What is accepted is a beginning.
  static void Work(RankLog& log, Accepted& accepted) {
    EventSink* sink = log.ClaimSink(0);
    for (uint64_t seq = 0; seq < kEvents; ++seq) {
      if (seq == 20) {
        TraceHeader header;
        header.rank = 4;
        accepted.became_rank = log.BecomeRank(header).has_value();
      }
      if (seq % 100 == 0) {
        const std::string bytes = SomeBytes(seq, 40000);
        if (log.PutPayload(HashOf(bytes), AsBytes(bytes), 4).kept) ++accepted.payloads;
      }
      if (sink->Append(AsBytes(NoteEvent(0, seq, SomeBytes(seq, 300))))) {
        EXPECT_EQ(accepted.events, seq) << "an event was accepted after one was refused";
        ++accepted.events;
      }
      if (seq % 100 == 50) log.Flush();
    }
    log.Finish();
    accepted.counters = log.counters();
  }

  Accepted Record(const RankLogOptions& options) {
    Accepted accepted;
    CapturedStderr captured;
    auto log = RankLog::Create(options);
    EXPECT_TRUE(log);
    if (log) Work(**log, accepted);
    accepted.lines = captured.Lines();
    return accepted;
  }

  // Runs `body` in a child, which may change its limits; its exit code.
  template <typename Body>
  int InChild(const Body& body) {
    const pid_t child = fork();
    if (child == 0) {
      body();
      _exit(::testing::Test::HasFailure() ? 1 : 0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
  }

  // Steps of which each keeps something, with a window; what is kept is named in an event.
  void RecordWindow(const RankLogOptions& options) {
    CapturedStderr captured;
    auto log = RankLog::Create(options);
    ASSERT_TRUE(log);
    TraceHeader header;
    header.rank = 4;
    if (!(*log)->BecomeRank(header)) return;
    EventSink* sink = (*log)->ClaimSink(0);
    uint64_t seq = 0;
    for (uint64_t step = 1; step <= 12; ++step) {
      (*log)->BeginStep(step);
      const std::string bytes = SomeBytes(step, 20000);
      const Placed placed = (*log)->PutPayload(HashOf(bytes), AsBytes(bytes), 4);
      Snapshot snapshot;
      snapshot.tensor.hash = HashOf(bytes);
      snapshot.tensor.payload =
          static_cast<uint32_t>(placed.kept ? PayloadState::kKept : PayloadState::kDropped);
      snapshot.tensor.segment = placed.segment;
      (void)sink->Append(AsBytes(EncodeEventToString(EventHead{0, seq, seq}, snapshot)));
      ++seq;
      if (step % 2 == 0) (*log)->Flush();
    }
    (*log)->Finish();
  }

  // What was accepted is there, or was dropped because the window says so.
  static void ExpectWindow(const std::string& folder) {
    auto reader = RankReader::Open(folder);
    ASSERT_TRUE(reader) << reader.error().message;
    uint64_t kept = 0;
    const auto cursor = (*reader)->Events();
    while (const Event* event = cursor->Next()) {
      const auto* snapshot = event->As<Snapshot>();
      if (snapshot == nullptr) continue;
      if (snapshot->tensor.payload != static_cast<uint32_t>(PayloadState::kKept)) continue;
      ++kept;
      const bool there = (*reader)->PayloadSize(snapshot->tensor.hash).has_value();
      ASSERT_TRUE(there || (*reader)->Dropped(snapshot->tensor.segment)) << "snapshot " << kept;
    }
    EXPECT_EQ(cursor->damage(), "");
  }

  static void ExpectAll(const RankScan& scan, const Accepted& accepted) {
    EXPECT_EQ(scan.problem, "");
    const std::vector<std::string> notes = scan.Notes(0);
    ASSERT_EQ(notes.size(), accepted.events);
    for (uint64_t seq = 0; seq < notes.size(); ++seq) ASSERT_EQ(notes[seq], SomeBytes(seq, 300));
  }

  TempDir dir_;
  TempDir tails_;
};

TEST_F(FailingDiskTest, OneFailedWriteCostsNothingThatWasAccepted) {
  g_fail_for_good = false;
  RankLogOptions options = Options();
  options.wrap_file = MakeFailing;
  bool failed = true;
  for (g_fail_at = 1; failed; ++g_fail_at) {
    SCOPED_TRACE("write " + std::to_string(g_fail_at));
    g_writes = 0;
    const Accepted accepted = Record(options);
    failed = g_writes >= g_fail_at;
    ASSERT_EQ(accepted.lines.size(), failed ? 1u : 0u);
    if (failed) {
      EXPECT_THAT(accepted.lines[0], HasSubstr("rank 4: cannot write the file of the test"));
      EXPECT_THAT(accepted.lines[0], HasSubstr("not recorded"));
    }
    if (accepted.became_rank) {
      const RankScan scan = ScanRank(dir_ / "rank-00004", true);
      ExpectAll(scan, accepted);
      if (HasFatalFailure()) return;
      EXPECT_TRUE(scan.finished);
      EXPECT_EQ(scan.payloads.size(), accepted.payloads);
      EXPECT_EQ(scan.footer.events_lost, kEvents - accepted.events);
    }
    EXPECT_EQ(accepted.counters.events + accepted.counters.events_lost, kEvents);
    EXPECT_TRUE(ListDir(tails_.path()).empty());
    std::filesystem::remove_all(dir_ / "rank-00004");
    EXPECT_TRUE(ListDir(dir_.path()).empty());
  }
  EXPECT_GT(g_fail_at, 20);
}

TEST_F(FailingDiskTest, AWindowSurvivesAFailedWrite) {
  RankLogOptions options = Options();
  options.wrap_file = MakeFailing;
  options.window.keep_steps = 3;
  for (const bool for_good : {false, true}) {
    g_fail_for_good = for_good;
    bool failed = true;
    for (g_fail_at = 1; failed; g_fail_at += for_good ? 4 : 1) {
      SCOPED_TRACE((for_good ? "from write " : "write ") + std::to_string(g_fail_at));
      g_writes = 0;
      RecordWindow(options);
      failed = g_writes >= g_fail_at;
      if (ListDir(dir_.path()).empty()) continue;
      ExpectWindow(dir_ / "rank-00004");
      if (HasFatalFailure()) return;
      std::filesystem::remove_all(dir_ / "rank-00004");
      for (const std::string& tail : ListDir(tails_.path())) std::filesystem::remove(tails_ / tail);
      EXPECT_TRUE(ListDir(dir_.path()).empty());
    }
    EXPECT_GT(g_fail_at, 20);
  }
}

TEST_F(FailingDiskTest, ADiskThatTakesNothingAnyMoreLosesOnlyWhatWasNotAccepted) {
  g_fail_for_good = true;
  RankLogOptions options = Options();
  options.wrap_file = MakeFailing;
  bool failed = true;
  for (g_fail_at = 1; failed; ++g_fail_at) {
    SCOPED_TRACE("from write " + std::to_string(g_fail_at));
    g_writes = 0;
    const Accepted accepted = Record(options);
    failed = g_writes >= g_fail_at;
    ASSERT_EQ(accepted.lines.size(), failed ? 1u : 0u);
    if (accepted.became_rank) {
      const std::string folder = dir_ / "rank-00004";
      // Nothing at all can be written, not even that something is lost: the tail still has it all.
      const RankScan scan = ScanRank(folder, true);
      ExpectAll(scan, accepted);
      if (HasFatalFailure()) return;
      EXPECT_EQ(scan.finished, !failed);
      EXPECT_EQ(scan.payloads.size(), accepted.payloads);
    }
    std::filesystem::remove_all(dir_ / "rank-00004");
    for (const std::string& name : ListDir(tails_.path())) std::filesystem::remove(tails_ / name);
    EXPECT_TRUE(ListDir(dir_.path()).empty());
  }
}

TEST_F(FailingDiskTest, RefusedEventsAreRecoveredWhenTheDiskTakesThemAgain) {
  g_fail_for_good = true;
  g_fail_at = 12;
  g_writes = 0;
  RankLogOptions options = Options();
  options.wrap_file = MakeFailing;
  EXPECT_EQ(InChild([&] { EXPECT_TRUE(Record(options).became_rank); }), 0);
  const std::string folder = dir_ / "rank-00004";
  EXPECT_FALSE(ScanRank(folder, false).finished);
  const RankScan before = ScanRank(folder, true);
  const auto report = RecoverRank(folder, {});
  ASSERT_TRUE(report) << report.error().message;
  const RankScan after = ScanRank(folder, false);
  EXPECT_TRUE(after.finished);
  EXPECT_EQ(after.problem, "");
  EXPECT_EQ(after.Notes(0), before.Notes(0));
  EXPECT_EQ(after.payloads, before.payloads);
  EXPECT_TRUE(ListDir(tails_.path()).empty());
}

TEST_F(FailingDiskTest, NoTraceDirectory) {
  RankLogOptions options = Options();
  options.trace_dir = dir_ / "missing";
  const Accepted accepted = Record(options);
  EXPECT_FALSE(accepted.became_rank);
  ASSERT_EQ(accepted.lines.size(), 1u);
  EXPECT_THAT(accepted.lines[0], HasSubstr("this rank is not recorded"));
  EXPECT_TRUE(ListDir(tails_.path()).empty());
}

TEST_F(FailingDiskTest, NoTailDirectory) {
  RankLogOptions options = Options();
  options.tail_dir = dir_ / "missing";
  const Accepted accepted = Record(options);
  EXPECT_TRUE(accepted.became_rank);
  EXPECT_TRUE(accepted.lines.empty());
  ExpectAll(ScanRank(dir_ / "rank-00004", false), accepted);
  EXPECT_EQ(ListDir(dir_.path()).size(), 1u);
}

TEST_F(FailingDiskTest, NoDirectoryAtAll) {
  RankLogOptions options = Options();
  options.tail_dir = dir_ / "missing";
  options.trace_dir = dir_ / "missing too";
  const Accepted accepted = Record(options);
  EXPECT_FALSE(accepted.became_rank);
  EXPECT_EQ(accepted.lines.size(), 1u);
}

TEST_F(FailingDiskTest, ALimitOnFileSizesRaisesNoSignal) {
  for (const rlim_t limit :
       {rlim_t{0}, rlim_t{5000}, rlim_t{200000}, rlim_t{8} << 20, rlim_t{9} << 20}) {
    SCOPED_TRACE(limit);
    EXPECT_EQ(InChild([&] {
                signal(SIGXFSZ, SIG_DFL);
                const rlimit value = {limit, limit};
                setrlimit(RLIMIT_FSIZE, &value);
                auto log = RankLog::Create(Options());
                Accepted accepted;
                if (!log) _exit(40);
                const int null = open("/dev/null", O_WRONLY);
                dup2(null, STDERR_FILENO);
                Work(**log, accepted);
                // The program's own mistakes stay its own.
                sigset_t pending;
                sigpending(&pending);
                EXPECT_EQ(sigismember(&pending, SIGXFSZ), 0);
              }),
              0);
    std::filesystem::remove_all(dir_ / "rank-00004");
    for (const std::string& name : ListDir(tails_.path())) std::filesystem::remove(tails_ / name);
  }
}

TEST_F(FailingDiskTest, NoDescriptorsLeft) {
  for (const rlim_t limit : {rlim_t{3}, rlim_t{4}, rlim_t{5}, rlim_t{6}, rlim_t{8}, rlim_t{300}}) {
    SCOPED_TRACE(limit);
    EXPECT_EQ(InChild([&] {
                closefrom(3);
                const rlimit value = {limit, limit};
                setrlimit(RLIMIT_NOFILE, &value);
                auto log = RankLog::Create(Options());
                if (!log) _exit(40);
                // The program takes what is left.
                while (dup(STDERR_FILENO) >= 0) {
                }
                Accepted accepted;
                const int null = open("/dev/null", O_WRONLY);
                if (null >= 0) dup2(null, STDERR_FILENO);
                Work(**log, accepted);
                if (limit == 300 && !accepted.became_rank) _exit(41);
              }),
              0);
    std::filesystem::remove_all(dir_ / "rank-00004");
    for (const std::string& name : ListDir(tails_.path())) std::filesystem::remove(tails_ / name);
  }
}

TEST_F(FailingDiskTest, AProgramThatClosesAllDescriptorsIsStillRecorded) {
  auto log = RankLog::Create(Options());
  ASSERT_TRUE(log);
  EXPECT_EQ(InChild([&] {
              auto own = RankLog::Create(Options());
              if (!own) _exit(40);
              TraceHeader header;
              header.rank = 4;
              if (!(*own)->BecomeRank(header)) _exit(41);
              closefrom(3);
              // Whatever it opens now may get the numbers that Deja had.
              std::vector<int> files;
              for (int i = 0; i < 300; ++i) {
                files.push_back(open((dir_ / "program's file").c_str(), O_RDWR | O_CREAT, 0600));
              }
              EventSink* sink = (*own)->ClaimSink(0);
              for (uint64_t seq = 0; seq < kEvents; ++seq) {
                if (!sink->Append(AsBytes(NoteEvent(0, seq, SomeBytes(seq, 300))))) _exit(42);
              }
              (*own)->Finish();
            }),
            0);
  EXPECT_EQ(std::filesystem::file_size(dir_ / "program's file"), 0u);
  const RankScan scan = ScanRank(dir_ / "rank-00004", false);
  EXPECT_TRUE(scan.finished);
  EXPECT_EQ(scan.Notes(0).size(), kEvents);
}

// A file system of a fixed size; skipped where the test may not mount one.
class SmallFileSystem {
 public:
  explicit SmallFileSystem(const char* size) {
    mounted_ =
        mount("tmpfs", dir_.path().c_str(), "tmpfs", 0, (std::string("size=") + size).c_str()) == 0;
  }
  ~SmallFileSystem() {
    if (mounted_) umount2(dir_.path().c_str(), MNT_DETACH);
  }
  SmallFileSystem(const SmallFileSystem&) = delete;
  SmallFileSystem& operator=(const SmallFileSystem&) = delete;
  [[nodiscard]] bool mounted() const { return mounted_; }
  [[nodiscard]] const std::string& path() const { return dir_.path(); }

 private:
  TempDir dir_;
  bool mounted_ = false;
};

TEST_F(FailingDiskTest, AFullShmIsNoBusError) {
  for (const char* size : {"64k", "600k", "1m", "1500k", "3m"}) {
    SCOPED_TRACE(size);
    SmallFileSystem shm(size);
    if (!shm.mounted()) GTEST_SKIP() << "may not mount a file system";
    RankLogOptions options = Options();
    options.tail_dir = shm.path();
    options.payload_bytes = 64 << 20;
    EXPECT_EQ(InChild([&] {
                auto log = RankLog::Create(options);
                if (!log) _exit(40);
                std::vector<EventSink*> sinks;
                for (uint32_t t = 1; t < 30; ++t) sinks.push_back((*log)->ClaimSink(t));
                Accepted accepted;
                Work(**log, accepted);
                if (!accepted.became_rank || accepted.events != kEvents) _exit(41);
                if (accepted.payloads != kEvents / 100) _exit(42);
              }),
              0);
    const RankScan scan = ScanRank(dir_ / "rank-00004", false);
    EXPECT_EQ(scan.Notes(0).size(), kEvents);
    EXPECT_EQ(scan.payloads.size(), kEvents / 100);
    std::filesystem::remove_all(dir_ / "rank-00004");
  }
}

TEST_F(FailingDiskTest, ATraceOnAFullFileSystem) {
  for (const char* size : {"16k", "64k", "200k", "400k"}) {
    SCOPED_TRACE(size);
    SmallFileSystem disk(size);
    if (!disk.mounted()) GTEST_SKIP() << "may not mount a file system";
    RankLogOptions options = Options();
    options.trace_dir = disk.path();
    const Accepted accepted = Record(options);
    EXPECT_EQ(accepted.lines.size(), 1u);
    EXPECT_TRUE(ListDir(tails_.path()).empty());
    EXPECT_EQ(accepted.became_rank, size != std::string("16k"));
    if (!accepted.became_rank) continue;
    // There is no room for what was accepted last, but always for saying so.
    const RankScan scan = ScanRank(disk.path() + "/rank-00004", false);
    EXPECT_EQ(scan.problem, "");
    EXPECT_TRUE(scan.finished);
    const std::vector<std::string> notes = scan.Notes(0);
    for (uint64_t seq = 0; seq < notes.size(); ++seq) EXPECT_EQ(notes[seq], SomeBytes(seq, 300));
    EXPECT_EQ(notes.size() + scan.footer.events_lost, kEvents);
    EXPECT_EQ(scan.payloads.size() + scan.footer.payloads_lost, kEvents / 100);
    EXPECT_EQ(scan.events.back().kind, EventKind::kDegraded);
    EXPECT_THAT(scan.events.back().note, HasSubstr("No space left"));
    // What a launcher knows of the process's end finds room, too.
    ProcessFate fate;
    fate.known = true;
    fate.exit_code = 3;
    const auto report = RecoverRank(disk.path() + "/rank-00004", fate);
    EXPECT_TRUE(report) << report.error().message;
    EXPECT_EQ(ScanRank(disk.path() + "/rank-00004", false).footer.fate.exit_code, 3);
  }
}

}  // namespace
}  // namespace deja::format
