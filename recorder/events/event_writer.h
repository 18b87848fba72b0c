// EventWriter: puts events on the calling thread's stream.
//
// A process is recorded from its first hook on. Most processes of a job (shells, launchers, data
// loaders) never make a communicator: they must cost next to nothing and leave nothing. So events
// are staged in private memory until GoLive() hands them, and everything that follows, to the
// process's RankLog. From then on an event is durable against SIGKILL when Write returns.
//
// Any thread, inside the guard. Write allocates nothing and makes no syscall once its thread has
// written before. Failing to stage or to append never reaches the caller; the log counts losses.
#ifndef DEJA_RECORDER_EVENTS_EVENT_WRITER_H_
#define DEJA_RECORDER_EVENTS_EVENT_WRITER_H_

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

#include "common/runtime/spin_lock.h"
#include "format/log/rank_log.h"
#include "format/tail/clock_run.h"
#include "format/wire/event_encoder.h"
#include "format/wire/message_codec.h"
#include "format/wire/messages.h"
#include "preload/process/threads.h"
#include "preload/stack/stack.h"
#include "recorder/events/event_clock.h"
#include "recorder/events/thread_state.h"

namespace deja::recorder {

class EventWriter final : public preload::StackSink {
 public:
  // Staged bytes of all threads together after which the owner should go live anyway.
  static constexpr size_t kMaxStagedBytes = 64 << 20;

  // Appends `body` to this thread's stream and returns its seq there. The first event of a thread
  // is preceded by its ThreadStart.
  template <typename Body>
  uint64_t Write(const Body& body) {
    preload::ThreadRecord& self = preload::Self();
    if (!Prepare(self)) return 0;
    return WriteUnchecked(self, body);
  }

  // False: the calling thread's stream has ended.
  [[nodiscard]] bool IsOpen() const {
    const preload::ThreadRecord& self = preload::Self();
    const auto* state = static_cast<const ThreadState*>(self.engine_state);
    return state == nullptr || !state->ended;
  }
  // The thread has read a clock. Several of these become one event (ClockRun); each is as durable
  // as an event when this returns. Keeps errno.
  void WriteClock(format::ClockSource source, int64_t ns) {
    preload::ThreadRecord& self = preload::Self();
    format::ClockArea* area = live() && self.sink != nullptr ? self.sink->clocks() : nullptr;
    if (area != nullptr) {
      const uint32_t n = area->count.load(std::memory_order_relaxed);
      if (n != 0 && n < format::kMaxClockReads) {
        area->sources[n] = static_cast<uint8_t>(source);
        area->values[n] = ns;
        area->count.store(n + 1, std::memory_order_release);
        return;
      }
    }
    WriteClockSlowly(self, source, ns);
  }
  // The program has not seen the calling thread's last reading. It becomes one of `to`, if it is
  // one of `from` and no event has followed it. An event of its own is followed by one that says
  // so.
  void RenameClock(format::ClockSource from, format::ClockSource to);

  // For a signal handler: uses the log's emergency slot when the thread's sink cannot be used.
  // Async-signal-safe; only once live.
  template <typename Body>
  bool WriteInSignal(const Body& body) {
    format::RankLog* log = log_.load(std::memory_order_acquire);
    if (log == nullptr) return false;
    preload::ThreadRecord& self = preload::Self();
    format::ThreadStart start;
    if (Start(self, start)) AppendInSignal(*log, self, start);
    return AppendInSignal(*log, self, body);
  }

  // From now on everything goes to `log`, first of all what has been staged. Once.
  void GoLive(format::RankLog& log);
  [[nodiscard]] bool live() const { return log_.load(std::memory_order_acquire) != nullptr; }
  [[nodiscard]] size_t staged_bytes() const {
    return staged_bytes_.load(std::memory_order_relaxed);
  }

  // `relief(context)` is called after an event that must not be lost has been staged: of a process
  // that may be a rank's child. Before the first event.
  void SetRelief(void (*relief)(void*), void* context) {
    relief_ = relief;
    relief_context_ = context;
  }
  // True if a fact about the machine was staged, which a replay could not know otherwise.
  [[nodiscard]] bool has_identity() const { return has_identity_.load(std::memory_order_relaxed); }

  // In a forked child, of what its parent had staged, whose other threads are not here any more.
  // The first makes it possible to write to it, as the thread that has forked; the second gives all
  // of it to `log`.
  void InheritStaged();
  void HandOver(format::RankLog& log);

  // Ends the calling thread's stream: a ThreadEnd event, after which the thread is not recorded.
  void EndThread();
  // In the child after fork, for the only thread that is left: it starts a stream of its own.
  static void ForgetThread(preload::ThreadRecord& self);

  void OnModule(const format::ModuleLoaded& module) override { Write(module); }
  void OnStack(const format::StackDefined& stack) override { Write(stack); }

  // CLOCK_MONOTONIC, never less than at the thread's event before.
  static uint64_t NowNs(preload::ThreadRecord& self) {
    uint64_t now = EventNowNs();
    if (auto* state = static_cast<ThreadState*>(self.engine_state); state != nullptr) {
      now = std::max(now, state->last_ns);
      state->last_ns = now;
    }
    return now;
  }

 private:
  static constexpr size_t kSmallEvent = 3 << 10;
  struct StagedThread;

  template <typename Body>
  uint64_t WriteUnchecked(preload::ThreadRecord& self, const Body& body) {
    const format::EventHead head{self.index, self.next_seq, NowNs(self)};
    if constexpr (format::kIsRaw<Body>) {
      if (live() && self.sink != nullptr && self.sink->AppendRaw(head, body)) {
        ++self.next_seq;
        return head.seq;
      }
    }
    return WriteEncoded(self, head, body);
  }
  template <typename Body>
  __attribute__((noinline)) uint64_t WriteEncoded(preload::ThreadRecord& self,
                                                  const format::EventHead& head, const Body& body) {
    std::array<std::byte, kSmallEvent> buffer;
    size_t size = format::EncodeEventOnce(head, body, buffer);
    if (size != 0)
      Append(self, std::span(buffer.data(), size));
    else
      WriteLarge(self, head, body);
    // Not before it is there: a signal that ends the process in between would leave a gap, which
    // says that an event is missing.
    ++self.next_seq;
    if (relief_ != nullptr && !live() && MustLast(body)) relief_(relief_context_);
    return head.seq;
  }
  // What only describes a process, or is the same whenever it asks, is no reason to make a folder.
  template <typename Body>
  bool MustLast(const Body& body) {
    if constexpr (std::is_same_v<Body, format::Input>) return MustInputLast(body);
    return !std::is_same_v<Body, format::ThreadStart> && !std::is_same_v<Body, format::ThreadEnd> &&
           !std::is_same_v<Body, format::ModuleLoaded> &&
           !std::is_same_v<Body, format::StackDefined> &&
           !std::is_same_v<Body, format::GarbageCollection> &&
           !std::is_same_v<Body, format::ProcessExit>;
  }
  bool MustInputLast(const format::Input& input);

  template <typename Body>
  bool AppendInSignal(format::RankLog& log, preload::ThreadRecord& self, const Body& body) {
    std::array<std::byte, kSmallEvent> buffer;
    format::EventHead head{self.index, self.next_seq, NowNs(self)};
    // An event that the signal has interrupted, and that is there, is counted when the handler
    // returns: until then its number is taken, too. Its thread may be starting the drainer.
    if (self.sink != nullptr && self.sink->busy() && self.sink->has_published())
      head.seq = ++self.next_seq;
    else
      ++self.next_seq;
    std::span encoded(buffer.data(), format::EncodeEvent(head, body, buffer));
    if (encoded.empty()) return false;
    if (self.sink != nullptr && !self.sink->busy()) {
      FlushClocks(self);
      return self.sink->Append(encoded);
    }
    return log.AppendEmergency(encoded);
  }
  template <typename Body>
  __attribute__((noinline)) void WriteLarge(preload::ThreadRecord& self,
                                            const format::EventHead& head, const Body& body) {
    std::array<std::byte, format::kMaxEventBytes> buffer;
    size_t size = format::EncodeEvent(head, body, buffer);
    Append(self, std::span(buffer.data(), size));
  }

  // Makes an event of the clock readings before it: they come first.
  static void FlushClocks(preload::ThreadRecord& self) {
    const format::ClockArea* area = self.sink->clocks();
    if (area != nullptr && area->count.load(std::memory_order_relaxed) != 0)
      self.sink->FlushClocks();
  }
  // The first reading of a run, and all as long as the process is not live. Keeps errno.
  void SayUnseen(preload::ThreadRecord& self, format::ClockSource source);
  __attribute__((noinline)) void WriteClockSlowly(preload::ThreadRecord& self,
                                                  format::ClockSource source, int64_t ns);
  bool StageClock(preload::ThreadRecord& self, format::ClockSource source, int64_t ns);
  // Below: with staging_lock_ held.
  StagedThread* Staged(preload::ThreadRecord& self);
  void StageBytes(StagedThread& staged, std::span<const std::byte> encoded);
  void StageClockRun(StagedThread& staged);
  static void MoveTo(format::EventSink& sink, StagedThread& staged);

  // False if the thread is not recorded (any more).
  bool Prepare(preload::ThreadRecord& self);
  // True if this is the thread's first event: `start` must be written before it.
  bool Start(preload::ThreadRecord& self, format::ThreadStart& start);
  void Append(preload::ThreadRecord& self, std::span<const std::byte> encoded);
  void Stage(preload::ThreadRecord& self, std::span<const std::byte> encoded);

  std::atomic<format::RankLog*> log_{nullptr};
  std::atomic<uint32_t> next_thread_{0};
  std::atomic<size_t> staged_bytes_{0};
  std::atomic<bool> has_identity_{false};
  void (*relief_)(void*) = nullptr;
  void* relief_context_ = nullptr;
  SpinLock staging_lock_;  // guards the list, every StagedThread, and the step to live
  StagedThread* staged_ = nullptr;
};

}  // namespace deja::recorder

#endif  // DEJA_RECORDER_EVENTS_EVENT_WRITER_H_
