// What is lost of a million events a second when the process is killed, and what an event costs its
// thread: Deja's log beside a file that each event is written to with write(2), in turns.
//
//   kill_loss [ROUNDS]
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <new>
#include <string>

#include "format/log/rank_log.h"
#include "format/reader/rank_reader.h"
#include "format/repair/recovery.h"
#include "format/wire/message_codec.h"

namespace deja::format {
namespace {

constexpr uint64_t kEventsASecond = 1000000;

struct Progress {
  std::atomic<uint64_t> events;
  std::atomic<uint64_t> cpu_ns;  // of the thread that makes them
};

uint64_t Ns(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1000000000 + static_cast<uint64_t>(now.tv_nsec);
}

// Bursts of a thousand, so that the looking at clocks does not count.
template <typename One>
[[noreturn]] void MakeEvents(Progress& progress, const One& one) {
  constexpr uint64_t kBurst = 1000;
  const uint64_t begin = Ns(CLOCK_MONOTONIC);
  uint64_t cpu = 0;
  for (uint64_t n = 0;;) {
    const uint64_t before = Ns(CLOCK_THREAD_CPUTIME_ID);
    for (const uint64_t end = n + kBurst; n < end; ++n) {
      if (!one(n)) _exit(1);
      progress.events.store(n + 1, std::memory_order_release);
    }
    cpu += Ns(CLOCK_THREAD_CPUTIME_ID) - before;
    progress.cpu_ns.store(cpu, std::memory_order_relaxed);
    while ((Ns(CLOCK_MONOTONIC) - begin) / 1000 * kEventsASecond / 1000000 < n) {
    }
  }
}

std::span<const std::byte> Event(uint64_t n, std::span<std::byte> buffer) {
  CallEnter enter;
  enter.api = 4;
  enter.comm = 1;
  enter.comm_seq = n + 1;
  enter.args = {0x7f0012345678, 0x7f0012345678, 65536, 7, 0, 1, 0};
  return buffer.first(EncodeEvent(EventHead{0, n, n}, enter, buffer));
}

[[noreturn]] void ByDeja(const std::string& dir, Progress& progress) {
  RankLogOptions options;
  options.trace_dir = dir;
  auto log = RankLog::Create(options);
  if (!log || !(*log)->BecomeRank({})) _exit(1);
  EventSink* sink = (*log)->ClaimSink(0);
  std::byte buffer[256];
  MakeEvents(progress, [&](uint64_t n) { return sink->Append(Event(n, buffer)); });
}

[[noreturn]] void ByWrite(const std::string& dir, Progress& progress) {
  const int fd = open((dir + "/events").c_str(), O_CREAT | O_WRONLY | O_APPEND, 0600);
  std::byte buffer[256];
  MakeEvents(progress, [&](uint64_t n) {
    std::span<const std::byte> event = Event(n, buffer);
    // All of one size, so that they can be counted.
    return write(fd, buffer, 64) == 64 && !event.empty();
  });
}

uint64_t Found(const std::string& dir, bool deja) {
  if (!deja) return std::filesystem::file_size(dir + "/events") / 64;
  const auto reader = RankReader::Open(dir + "/rank-00000");
  uint64_t events = 0;
  if (reader) {
    const auto cursor = (*reader)->Events();
    while (cursor->Next() != nullptr) ++events;
  }
  return events;
}

int Round(bool deja, Progress& progress) {
  std::string dir = (std::filesystem::temp_directory_path() / "deja-bench-XXXXXX").string();
  if (mkdtemp(dir.data()) == nullptr) return 1;
  new (&progress) Progress{};
  const pid_t child = fork();
  if (child == 0) deja ? ByDeja(dir, progress) : ByWrite(dir, progress);
  usleep(1000000);
  kill(child, SIGKILL);
  int status = 0;
  waitpid(child, &status, 0);
  const uint64_t made = progress.events.load();
  const uint64_t found = Found(dir, deja);
  std::printf("%s: %llu events made, %llu lost, %.0f ns each\n", deja ? "deja" : "write(2)",
              static_cast<unsigned long long>(made),
              static_cast<unsigned long long>(made > found ? made - found : 0),
              static_cast<double>(progress.cpu_ns.load()) / static_cast<double>(made));
  if (deja && !RecoverRank(dir + "/rank-00000", {})) return 1;  // removes the tail
  std::filesystem::remove_all(dir);
  return made == 0 ? 1 : 0;
}

}  // namespace
}  // namespace deja::format

int main(int argc, char** argv) {
  using namespace deja::format;
  void* memory =
      mmap(nullptr, sizeof(Progress), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return 1;
  auto* progress = new (memory) Progress{};
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 5;
  for (int i = 0; i < rounds; ++i)
    if (Round(true, *progress) != 0 || Round(false, *progress) != 0) return 1;
  return 0;
}
