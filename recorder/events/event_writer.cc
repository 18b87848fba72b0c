#include "recorder/events/event_writer.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <new>

#include "api/libc_table.h"
#include "common/runtime/errno_keeper.h"
#include "recorder/events/mapped_memory.h"
#include "recorder/events/thread_state.h"

namespace deja::recorder {
namespace {

// A piece of what one thread has staged: events, each after its length.
struct Chunk {
  static constexpr size_t kBytes = 64 << 10;
  Chunk* next = nullptr;
  size_t used = 0;
  std::byte bytes[kBytes - 16];
};
static_assert(sizeof(Chunk) == Chunk::kBytes);

void CountClockRun(preload::ThreadRecord& self) {
  if (ThreadState* state = StateOf(self)) ++state->clock_runs;
}

}  // namespace

struct EventWriter::StagedThread {
  StagedThread* next = nullptr;
  preload::ThreadRecord* record = nullptr;
  uint32_t index = 0;  // of the thread
  bool ended = false;
  Chunk* first = nullptr;
  Chunk* last = nullptr;
  format::ClockArea clocks{};  // readings that no event has followed
};

ThreadState* StateOf(preload::ThreadRecord& self) {
  if (self.engine_state == nullptr) {
    void* memory = MapZeroed(sizeof(ThreadState));
    if (memory == nullptr) return nullptr;
    self.engine_state = new (memory) ThreadState;
  }
  return static_cast<ThreadState*>(self.engine_state);
}

bool EventWriter::Start(preload::ThreadRecord& self, format::ThreadStart& start) {
  ThreadState* state = StateOf(self);
  if (state == nullptr || state->started) return false;
  state->started = true;
  self.index = next_thread_.fetch_add(1, std::memory_order_relaxed);
  self.next_seq = 0;
  start.thread = self.index;
  start.name = self.name;
  start.tid = static_cast<uint32_t>(syscall(SYS_gettid));
  return true;
}

bool EventWriter::Prepare(preload::ThreadRecord& self) {
  auto* state = static_cast<ThreadState*>(self.engine_state);
  if (state != nullptr && state->started) return !state->ended;
  format::ThreadStart start;
  if (Start(self, start)) WriteUnchecked(self, start);
  return self.engine_state != nullptr;
}

bool EventWriter::MustInputLast(const format::Input& input) {
  using api::LibcApi;
  if (api::InputKindOf(input.api) != api::InputKind::kIdentity) return true;
  const auto api = static_cast<LibcApi>(input.api);
  // Numbers of processes are known from the process that made this one.
  if (api != LibcApi::kgetpid && api != LibcApi::kgetppid && api != LibcApi::kgettid)
    has_identity_.store(true, std::memory_order_relaxed);
  return false;
}

void EventWriter::Append(preload::ThreadRecord& self, std::span<const std::byte> encoded) {
  format::RankLog* log = log_.load(std::memory_order_acquire);
  if (log == nullptr) return Stage(self, encoded);
  if (self.sink == nullptr) self.sink = log->ClaimSink(self.index);
  FlushClocks(self);
  self.sink->Append(encoded);
}

void EventWriter::WriteClockSlowly(preload::ThreadRecord& self, format::ClockSource source,
                                   int64_t ns) {
  const ErrnoKeeper keep;
  if (!Prepare(self)) return;
  format::RankLog* log = log_.load(std::memory_order_acquire);
  if (log == nullptr) {
    if (StageClock(self, source, ns)) return;
    log = log_.load(std::memory_order_acquire);  // another thread went live in between
  }
  if (self.sink == nullptr) self.sink = log->ClaimSink(self.index);
  format::ClockArea* area = self.sink->clocks();
  if (area == nullptr) {
    format::ClockRun run;
    run.sources.push_back(static_cast<uint32_t>(source));
    run.deltas.push_back(ns);
    WriteUnchecked(self, run);
    CountClockRun(self);
    auto* state = static_cast<ThreadState*>(self.engine_state);
    state->lone_source = static_cast<uint8_t>(source);
    state->lone_end = self.next_seq;
    return;
  }
  if (area->count.load(std::memory_order_relaxed) != 0) self.sink->FlushClocks();
  if (area->count.load(std::memory_order_relaxed) != 0) return;  // the log is finished
  area->thread = self.index;
  area->time_ns = NowNs(self);
  area->seq = self.next_seq;
  area->sources[0] = static_cast<uint8_t>(source);
  area->values[0] = ns;
  self.sink->ExpectClocks();
  area->count.store(1, std::memory_order_release);
  ++self.next_seq;  // when it is there, as in WriteUnchecked
  CountClockRun(self);
}

// False if the process is live.
bool EventWriter::StageClock(preload::ThreadRecord& self, format::ClockSource source, int64_t ns) {
  Hold hold(staging_lock_);
  if (log_.load(std::memory_order_relaxed) != nullptr) return false;
  StagedThread* staged = Staged(self);
  if (staged == nullptr) return true;
  format::ClockArea& area = staged->clocks;
  uint32_t n = area.count.load(std::memory_order_relaxed);
  if (n == format::kMaxClockReads) {
    StageClockRun(*staged);
    n = 0;
  }
  if (n == 0) {
    area.thread = self.index;
    area.time_ns = NowNs(self);
    area.seq = self.next_seq++;
    CountClockRun(self);
  }
  area.sources[n] = static_cast<uint8_t>(source);
  area.values[n] = ns;
  area.count.store(n + 1, std::memory_order_relaxed);
  return true;
}

namespace {

void RenameLast(format::ClockArea& area, format::ClockSource from, format::ClockSource to) {
  const uint32_t n = area.count.load(std::memory_order_relaxed);
  if (n == 0 || n > format::kMaxClockReads) return;
  uint8_t& last = area.sources[n - 1];
  if (last == static_cast<uint8_t>(from)) last = static_cast<uint8_t>(to);
}

// The event of the readings in `area`, which is empty afterwards.
std::span<const std::byte> TakeRun(format::ClockArea& area, std::span<std::byte> buffer) {
  const uint32_t n = area.count.exchange(0, std::memory_order_relaxed);
  if (n == 0) return {};
  const format::EventHead head{area.thread, area.seq, area.time_ns};
  return buffer.first(format::EncodeClockRun(head, std::span(area.sources).first(n),
                                             std::span(area.values).first(n), buffer.data()));
}

}  // namespace

void EventWriter::SayUnseen(preload::ThreadRecord& self, format::ClockSource source) {
  auto* state = static_cast<ThreadState*>(self.engine_state);
  if (state == nullptr || state->lone_end != self.next_seq ||
      state->lone_source != static_cast<uint8_t>(source))
    return;
  const ErrnoKeeper keep;
  format::ClockRun run;
  run.sources.push_back(static_cast<uint32_t>(format::ClockSource::kUnseen));
  run.deltas.push_back(static_cast<int64_t>(source));
  WriteUnchecked(self, run);
  CountClockRun(self);
}

void EventWriter::RenameClock(format::ClockSource from, format::ClockSource to) {
  preload::ThreadRecord& self = preload::Self();
  if (live()) {
    format::ClockArea* area = self.sink == nullptr ? nullptr : self.sink->clocks();
    if (area != nullptr)
      RenameLast(*area, from, to);
    else
      SayUnseen(self, from);
    return;
  }
  Hold hold(staging_lock_);
  const auto* state = static_cast<const ThreadState*>(self.engine_state);
  if (log_.load(std::memory_order_relaxed) != nullptr || state == nullptr) return;
  if (auto* staged = static_cast<StagedThread*>(state->staged); staged != nullptr)
    RenameLast(staged->clocks, from, to);
}

void EventWriter::StageClockRun(StagedThread& staged) {
  std::byte buffer[format::kMaxClockRunBytes];
  const std::span<const std::byte> run = TakeRun(staged.clocks, buffer);
  if (!run.empty()) StageBytes(staged, run);
}

EventWriter::StagedThread* EventWriter::Staged(preload::ThreadRecord& self) {
  ThreadState* state = StateOf(self);
  auto* staged = static_cast<StagedThread*>(state->staged);
  if (staged != nullptr) return staged;
  void* memory = MapZeroed(sizeof(StagedThread));
  if (memory == nullptr) return nullptr;
  staged = new (memory) StagedThread;
  staged->record = &self;
  staged->index = self.index;
  staged->next = staged_;
  staged_ = staged;
  state->staged = staged;
  return staged;
}

void EventWriter::StageBytes(StagedThread& staged, std::span<const std::byte> encoded) {
  auto length = static_cast<uint32_t>(encoded.size());
  size_t needed = sizeof length + length;
  if (staged.last == nullptr || staged.last->used + needed > sizeof staged.last->bytes) {
    void* memory = MapZeroed(sizeof(Chunk));
    if (memory == nullptr) return;
    auto* chunk = static_cast<Chunk*>(memory);
    (staged.last == nullptr ? staged.first : staged.last->next) = chunk;
    staged.last = chunk;
  }
  std::byte* at = staged.last->bytes + staged.last->used;
  std::memcpy(at, &length, sizeof length);
  std::memcpy(at + sizeof length, encoded.data(), length);
  staged.last->used += needed;
  staged_bytes_.fetch_add(needed, std::memory_order_relaxed);
}

void EventWriter::Stage(preload::ThreadRecord& self, std::span<const std::byte> encoded) {
  {
    Hold hold(staging_lock_);
    if (log_.load(std::memory_order_relaxed) == nullptr) {
      StagedThread* staged = Staged(self);
      if (staged == nullptr) return;
      StageClockRun(*staged);
      StageBytes(*staged, encoded);
      return;
    }
  }
  Append(self, encoded);  // another thread went live in between
}

void EventWriter::MoveTo(format::EventSink& sink, StagedThread& staged) {
  for (Chunk* chunk = staged.first; chunk != nullptr;) {
    for (size_t at = 0; at < chunk->used;) {
      uint32_t length;
      std::memcpy(&length, chunk->bytes + at, sizeof length);
      sink.Append(std::span(chunk->bytes + at + sizeof length, length));
      at += sizeof length + length;
    }
    Chunk* next = chunk->next;
    munmap(chunk, sizeof(Chunk));
    chunk = next;
  }
  staged.first = staged.last = nullptr;
  std::byte buffer[format::kMaxClockRunBytes];
  const std::span<const std::byte> run = TakeRun(staged.clocks, buffer);
  if (!run.empty()) sink.Append(run);
}

void EventWriter::InheritStaged() {
  relief_ = nullptr;
}

// The records of the threads are this process's by now.
void EventWriter::HandOver(format::RankLog& log) {
  for (StagedThread* staged = staged_; staged != nullptr; staged = staged->next) {
    format::EventSink* sink = log.ClaimSink(staged->index);
    MoveTo(*sink, *staged);
    log.ReleaseSink(sink);
  }
  staged_ = nullptr;
}

void EventWriter::GoLive(format::RankLog& log) {
  Hold hold(staging_lock_);
  StagedThread* staged = staged_;
  staged_ = nullptr;
  while (staged != nullptr) {
    preload::ThreadRecord& record = *staged->record;
    // Its thread cannot be using the sink: until log_ is set it stages, under the lock held here.
    record.sink = log.ClaimSink(record.index);
    MoveTo(*record.sink, *staged);
    if (staged->ended) {
      log.ReleaseSink(record.sink);
      record.sink = nullptr;
    }
    StagedThread* next = staged->next;
    munmap(staged, sizeof(StagedThread));
    staged = next;
  }
  log_.store(&log, std::memory_order_release);
}

void EventWriter::EndThread() {
  preload::ThreadRecord& self = preload::Self();
  auto* state = static_cast<ThreadState*>(self.engine_state);
  if (state == nullptr || !state->started || state->ended) return;
  WriteUnchecked(self, format::ThreadEnd{});
  state->ended = true;
  Hold hold(staging_lock_);
  format::RankLog* log = log_.load(std::memory_order_relaxed);
  if (log == nullptr) {
    if (state->staged != nullptr) static_cast<StagedThread*>(state->staged)->ended = true;
    return;
  }
  if (self.sink != nullptr) log->ReleaseSink(self.sink);
  self.sink = nullptr;
}

void EventWriter::ForgetThread(preload::ThreadRecord& self) {
  self.sink = nullptr;
  self.engine_state = nullptr;
  self.next_seq = 0;
  self.group_depth = 0;
}

}  // namespace deja::recorder
