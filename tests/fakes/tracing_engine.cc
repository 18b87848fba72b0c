// An engine for the tests of libc's hooks: makes every call and notes it.
//
// DEJA_TEST_LOG=file: one line an event, "THREAD WHAT …", written with one write each. What a
// replay does to the program can be asked for:
//   DEJA_TEST_SERVE_PID=n         getpid returns n, and n means this process
//   DEJA_TEST_SERVE_ENTROPY=1     all entropy is the bytes 0, 1, 2, …
//   DEJA_TEST_CLOCK_OFFSET_NS=n   wall clocks are off by n, deadlines are translated back
//   DEJA_TEST_MONOTONIC_OFFSET_NS=n   the same for the monotonic clock
//   DEJA_TEST_OVERLAY=dir         files are written below it, and read from there if they are there
//   DEJA_TEST_REFUSE=1            connections, and signals to others, are refused
//   DEJA_TEST_FAULT_IN_CRASH=1    OnCrash itself faults
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

#include "api/libc_table.h"
#include "common/runtime/errno_keeper.h"
#include "preload/engine/engine.h"
#include "preload/process/guard.h"
#include "preload/process/threads.h"
#include "preload/stack/stack.h"
#include "tests/support/every_call.h"

namespace deja::preload {
namespace {

const char* UseName(FileUse use) {
  switch (use) {
    case FileUse::kRead:
      return "read";
    case FileUse::kWrite:
      return "write";
    case FileUse::kCreate:
      return "create";
    case FileUse::kRemove:
      return "remove";
    case FileUse::kMakeDir:
      return "mkdir";
    case FileUse::kMetadata:
      return "metadata";
    case FileUse::kLook:
      return "look";
    case FileUse::kLookAtLink:
      return "look at link";
    case FileUse::kResolve:
      return "resolve";
  }
  return "?";
}

int64_t Number(const char* name) {
  const char* text = getenv(name);
  return text != nullptr ? strtoll(text, nullptr, 10) : 0;
}

class TracingEngine final : public EveryCall {
 public:
  TracingEngine() {
    const char* path = getenv("DEJA_TEST_LOG");
    fd_ = path != nullptr ? open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600) : -1;
    overlay_ = getenv("DEJA_TEST_OVERLAY");
    // Descriptors of the program are the same with and without.
    if (fd_ >= 0) {
      int high = fcntl(fd_, F_DUPFD_CLOEXEC, 900);
      close(fd_);
      fd_ = high;
    }
  }

  void OnNcclCall(Call& call) override { call.invoke(call); }
  void OnInput(InputCall& call) override {
    api::InputKind kind = api::InputKindOf(call.api);
    if (kind == api::InputKind::kNone)
      abort();  // the row in api/tables/libc.def has to say what it is
    if (kind == api::InputKind::kEntropy && getenv("DEJA_TEST_SERVE_ENTROPY") != nullptr) {
      ServeEntropy(call);
    } else if (static_cast<api::LibcApi>(call.api) == api::LibcApi::kgetpid && served_pid_ != 0) {
      call.result = served_pid_;
    } else {
      call.Real();
    }
    Note("input %s key=%llu result=%lld produced=%zu", api::FindLibc(call.api)->name,
         static_cast<unsigned long long>(call.key), static_cast<long long>(call.result),
         call.produced);
  }
  int64_t OnClock(format::ClockSource source, int64_t live_ns) override {
    ErrnoKeeper keep;
    Note("input %s source=%u", NameOf(source), static_cast<unsigned>(source));
    return live_ns + OffsetOf(source);
  }
  uint64_t OnStep(uint64_t step) override {
    Note("step %llu", static_cast<unsigned long long>(step));
    return step;
  }
  void OnNote(std::string_view text) override {
    Note("note %.*s", static_cast<int>(text.size()), text.data());
  }
  void OnSnapshot(const SnapshotCall& call) override {
    Note("snapshot %.*s bytes=%zu dtype=%u dims=%zu opaque=%d", static_cast<int>(call.name.size()),
         call.name.data(), call.bytes, call.dtype, call.shape.size(), call.opaque ? 1 : 0);
  }
  void OnThreadStart() override { Note("thread start"); }
  void OnThreadEnd() override { Note("thread end"); }
  void OnCrash(int signal, const siginfo_t* info, void* context) override {
    Frames frames;
    CaptureStackInSignal(context, frames);
    Note("crash signal=%d code=%d frames=%d", signal, info->si_code, frames.size() > 2 ? 1 : 0);
    if (getenv("DEJA_TEST_FAULT_IN_CRASH") != nullptr) {
      asm volatile("" ::: "memory");
      *const_cast<volatile int*>(static_cast<int*>(null_)) = 1;
    }
  }
  void OnExit(int code, ExitHow how) override {
    Note("exit code=%d how=%u", code, static_cast<unsigned>(how));
  }
  void OnForkChild() override {
    served_pid_ = 0;
    Note("child");
  }
  const char* MapPath(int dirfd, const char* path, FileUse use, std::span<char> buffer) override {
    if (strstr(path, "watched") != nullptr) Note("path %s %s", UseName(use), Base(path));
    if (overlay_ == nullptr || strstr(path, "watched") == nullptr || dirfd != AT_FDCWD) return path;
    snprintf(buffer.data(), buffer.size(), "%s/%s", overlay_, Base(path));
    struct stat st;
    bool there = lstat(buffer.data(), &st) == 0;
    return use == FileUse::kRead && !there ? path : buffer.data();
  }
  bool MayConnect(int, const void*, uint32_t) override {
    Note("connect");
    return Allow(ECONNREFUSED);
  }
  bool MayKill(int pid, int signal) override {
    bool self = pid == static_cast<int>(syscall(SYS_getpid));
    Note("kill %s signal=%d", self ? "self" : "other", signal);
    return self || Allow(EPERM);
  }
  int MapPid(int pid) override {
    return served_pid_ != 0 && pid == served_pid_ ? static_cast<int>(syscall(SYS_getpid)) : pid;
  }
  int64_t DeadlineOffsetNs(int clock, int64_t) override {
    return clock < 0 || clock > CLOCK_TAI ? 0
                                          : -OffsetOf(static_cast<format::ClockSource>(clock + 1));
  }

 private:
  static const char* Base(const char* path) {
    const char* slash = strrchr(path, '/');
    return slash != nullptr ? slash + 1 : path;
  }
  static bool Allow(int error) {
    if (getenv("DEJA_TEST_REFUSE") == nullptr) return true;
    errno = error;
    return false;
  }
  void ServeEntropy(InputCall& call) {
    for (size_t i = 0; i < call.out.size(); ++i) call.out[i] = static_cast<std::byte>(next_++);
    call.produced = call.out.size();
    bool counts = static_cast<api::LibcApi>(call.api) == api::LibcApi::kgetrandom ||
                  static_cast<api::LibcApi>(call.api) == api::LibcApi::kread;
    call.result = counts ? static_cast<int64_t>(call.out.size()) : 0;
  }
  static const char* NameOf(format::ClockSource source) {
    switch (source) {
      case format::ClockSource::kGettimeofday:
        return "gettimeofday";
      case format::ClockSource::kTime:
        return "time";
      case format::ClockSource::kTimespecGet:
        return "timespec_get";
      case format::ClockSource::kClock:
        return "clock";
      default:
        return "clock_gettime";
    }
  }
  // The boot of another machine was at another time.
  [[nodiscard]] int64_t OffsetOf(format::ClockSource source) const {
    switch (source) {
      case format::ClockSource::kMonotonic:
      case format::ClockSource::kMonotonicCoarse:
        return monotonic_offset_;
      case format::ClockSource::kRealtime:
      case format::ClockSource::kRealtimeCoarse:
      case format::ClockSource::kGettimeofday:
      case format::ClockSource::kTime:
      case format::ClockSource::kTimespecGet:
        return clock_offset_;
      default:
        return 0;
    }
  }
  __attribute__((format(printf, 2, 3))) void Note(const char* format, ...) {
    if (fd_ < 0) return;
    char line[256];
    int n = snprintf(line, sizeof line, "%s ", Self().name);
    va_list list;
    va_start(list, format);
    n += vsnprintf(line + n, sizeof line - static_cast<size_t>(n) - 1, format, list);
    va_end(list);
    if (n > static_cast<int>(sizeof line) - 2) n = sizeof line - 2;
    line[n] = '\n';
    if (write(fd_, line, static_cast<size_t>(n) + 1) < 0) fd_ = -1;
  }

  int fd_ = -1;
  const char* overlay_ = nullptr;
  void* null_ = nullptr;
  int served_pid_ = static_cast<int>(Number("DEJA_TEST_SERVE_PID"));
  int64_t clock_offset_ = Number("DEJA_TEST_CLOCK_OFFSET_NS");
  int64_t monotonic_offset_ = Number("DEJA_TEST_MONOTONIC_OFFSET_NS");
  unsigned char next_ = 0;
};

}  // namespace

bool CreateEngine(Engine& engine) {
  alignas(TracingEngine) static char memory[sizeof(TracingEngine)];
  engine = EngineOf(*new (memory) TracingEngine);
  return true;
}

}  // namespace deja::preload
