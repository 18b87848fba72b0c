#include "format/log/drainer.h"

#include <pthread.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <utility>

#include "common/runtime/own_thread.h"
#include "format/layout/mark.h"
#include "format/layout/rank_folder.h"
#include "format/log/rank_log.h"
#include "format/tail/clock_run.h"
#include "format/wire/frame_format.h"
#include "format/wire/message_codec.h"

namespace deja::format {
namespace {

// How long events may stay in the tail before they are written although there is room. They are
// safe where they are; this bounds how much a reader of a running job finds outside the folder.
constexpr uint32_t kPassMs = 500;
// One sleep of a thread that waits for room, and the number of sleeps without progress after which
// it gives up. A disk that hangs must not hang the program. Counted in sleeps and not on the clock,
// so that a process that was stopped for an hour does not lose its recording.
constexpr uint32_t kWaitMs = 50;
constexpr int kMaxWaits = 600;

}  // namespace

Drainer::Drainer(Tail& tail, PayloadArena& arena, PayloadWindow& window, EventRing* rings,
                 const Options& options)
    : tail_(tail),
      arena_(arena),
      window_(window),
      rings_(rings),
      trace_dir_(options.trace_dir),
      background_(options.background),
      hang_after_ns_(options.hang_after_seconds * 1000000000),
      base_memory_(options.base_memory),
      effort_(options.effort),
      owner_pid_(static_cast<int>(tail.header().pid)),
      wrap_(options.wrap),
      scratch_(kMaxEventBytes) {
  spare_.Reserve();
}

Drainer::~Drainer() {
  if (thread_state_.load() != ThreadState::kRunning) return;
  stop_.store(true);
  wake_.store(1);
  FutexWake(wake_, 1);
  pthread_join(thread_, nullptr);
}

// ---- The thread -------------------------------------------------------------------------------

bool Drainer::EnsureThread() {
  if (thread_state_.load(std::memory_order_acquire) != ThreadState::kNone) {
    return thread_state_.load(std::memory_order_acquire) == ThreadState::kRunning;
  }
  if (!ThreadsMayStart()) return true;         // WakeSlowly will ask again
  if (!thread_mutex_.try_lock()) return true;  // a thread is making it
  if (thread_state_.load(std::memory_order_relaxed) == ThreadState::kNone) {
    const ScopedSignalBlock no_signals;  // the new thread inherits it and never sees a signal
    const int error = StartOwnThread(&thread_, &Drainer::ThreadMain, this);
    thread_state_.store(error == 0 ? ThreadState::kRunning : ThreadState::kImpossible,
                        std::memory_order_release);
  }
  thread_mutex_.unlock();
  return thread_state_.load(std::memory_order_relaxed) == ThreadState::kRunning;
}

void* Drainer::ThreadMain(void* self) {
  static_cast<Drainer*>(self)->Run();
  return nullptr;
}

void Drainer::Run() {
  prctl(PR_SET_NAME, "deja-writer");
  RunInBackground(background_);
  for (;;) {
    if (wake_.load(std::memory_order_acquire) == 0) FutexWait(wake_, 0, kPassMs);
    const bool woken = wake_.exchange(0, std::memory_order_acq_rel) != 0;
    mutex_.lock();
    if (finish_requested_.load(std::memory_order_acquire)) FinishNow();
    const bool over = stop_.load() || finished_.load(std::memory_order_relaxed) != 0;
    if (!over) Pass(woken);
    mutex_.unlock();
    if (over) return;
  }
}

void Drainer::WakeSlowly() {
  if (!ThreadsMayStart()) return;  // a later event will
  if (wake_.exchange(1, std::memory_order_acq_rel) != 0) return;
  if (EnsureThread()) FutexWake(wake_, 1);
}

bool Drainer::Wait(uint32_t seen, const std::atomic<bool>& off, int& waited) {
  if (off.load(std::memory_order_relaxed)) return false;
  Wake();
  if (thread_state_.load(std::memory_order_acquire) == ThreadState::kImpossible ||
      !ThreadsMayStart()) {
    const ScopedSignalBlock no_signals;
    mutex_.lock();
    wake_.store(0, std::memory_order_relaxed);
    Pass(true);
    mutex_.unlock();
    if (space_.load(std::memory_order_relaxed) != seen) return true;
  }
  waiters_.fetch_add(1);
  FutexWait(space_, seen, kWaitMs);
  waiters_.fetch_sub(1);
  if (space_.load(std::memory_order_relaxed) != seen) {
    waited = 0;
  } else if (++waited >= kMaxWaits) {
    GiveUp("the disk has taken nothing for 30 seconds");
  }
  return !off.load(std::memory_order_relaxed);
}

// Other ranks must not rely on this one any longer.
void Drainer::StopSharing() {
  SharedPieces* shared = shared_.load(std::memory_order_acquire);
  if (shared != nullptr) shared->Close();
}

// True if that was so already.
bool Drainer::TakeNoEvents() {
  for (uint32_t i = 0; i < kTailRings; ++i) rings_[i].Close();
  return events_off_.exchange(true);
}

void Drainer::GiveUp(const char* reason) {
  // Without the mutex: who holds it may be what hangs.
  payloads_off_.store(true);
  StopSharing();
  if (TakeNoEvents()) return;
  char line[160];
  const int size = snprintf(line, sizeof line, "deja: %s; what follows is not recorded\n", reason);
  (void)!write(STDERR_FILENO, line, static_cast<size_t>(size));
  FreeSpace();
}

void Drainer::FreeSpace() {
  space_.fetch_add(1, std::memory_order_release);
  if (waiters_.load() != 0) FutexWake(space_, INT32_MAX);
}

// ---- Draining ---------------------------------------------------------------------------------

void Drainer::Pass(bool forced) {
  if (events_off_.load(std::memory_order_relaxed)) return;
  // A process that may never become a rank writes nothing to the disk unless it must.
  if (!is_rank() && !forced) return;
  if (!EnsureWriter()) return;
  Drain();
}

// The folder alone, without the tail, should not refer to payloads that it lacks. A thread puts a
// payload before the event that names it. So the payloads there are now go before the events there
// were a moment ago.
void Drainer::Drain() {
  bool filling_up = false;
  for (uint32_t i = 0; i < kTailRings; ++i) {
    if (!InUse(i)) continue;
    ring_heads_[i] = rings_[i].head();
    filling_up |= ring_heads_[i] - rings_[i].tail() > rings_[i].capacity() / 2;
  }
  // Some may still be being copied; then the events wait, too, if they can.
  const bool all = DrainPayloads();
  if (is_rank()) MoveWindow();
  if (all || filling_up || events_too_) DrainEvents();
  Publish(false);
}

bool Drainer::EnsureWriter() {
  if (writer_ != nullptr) return true;
  RankWriterOptions options;
  options.spare = &spare_;
  options.wrap = wrap_;
  options.base_memory = base_memory_;
  options.effort = effort_;
  auto writer =
      RankWriter::Create(trace_dir_ + "/" + kPendingPrefix + tail_.process_name(), options);
  if (!writer) {
    EventsFailed(writer.error());
    return false;
  }
  writer_ = std::move(*writer);
  return true;
}

// True if all that was there has been written, or will not be.
bool Drainer::DrainPayloads() {
  if (payloads_failed_) return true;
  const uint64_t end = tail_.header().arena_head.load(std::memory_order_acquire);
  bool broken = false;
  while (tail_.header().arena_tail.load(std::memory_order_relaxed) != end) {
    BlockHeader* block = arena_.Front(broken);
    if (block == nullptr) break;
    if (block->state.load(std::memory_order_relaxed) ==
        static_cast<uint32_t>(BlockState::kComplete)) {
      const Status written = WriteBlock(*block);
      if (!written) {
        PayloadsFailed(written.error());
        return true;
      }
    }
    arena_.Pop(block);
    if (waiters_.load(std::memory_order_relaxed) != 0) FreeSpace();
  }
  if (broken) {
    PayloadsFailed(Error{ErrorCode::kCorrupt, "the program has overwritten the payload buffer", 0});
    return true;
  }
  arena_.Rewind();
  return tail_.header().arena_tail.load(std::memory_order_relaxed) >= end;
}

void Drainer::DrainEvents() {
  for (uint32_t i = 0; i < kTailRings; ++i) {
    if (!InUse(i)) continue;
    EventRing& ring = rings_[i];
    const uint64_t head = ring_heads_[i];
    uint64_t position = ring.tail();
    ring_tails_[i] = position;
    if (head <= position) continue;  // attached after the heads were taken
    while (position != head) {
      const EventRing::Record record = ring.Read(position, head, scratch_);
      if (record.event.empty()) {
        return EventsFailed(
            Error{ErrorCode::kCorrupt, "the program has overwritten the event buffer", 0});
      }
      writer_->AddEvent(record.event);
      position += record.bytes;
      ring_tails_[i] = position;
      if (writer_->batch_bytes() >= kBatchBytes && !WriteBatch()) return;
    }
  }
  (void)WriteBatch();
}

// Clock readings that no event has followed. Only when the log is closed: what is there would
// otherwise be turned into an event by its thread.
void Drainer::DrainClocks() {
  std::byte event[kMaxClockRunBytes];
  const auto readings = [this](uint32_t i) {
    const uint32_t count = tail_.clocks(i).count.load(std::memory_order_acquire);
    if ((count & ClockArea::kFlushing) == 0) return std::min(count, kMaxClockReads);
    // A thread was stopped while it made an event of them: perhaps it is in the ring.
    const bool done = rings_[i].records() != tail_.clocks(i).records_before;
    return done ? 0 : std::min(count & ~ClockArea::kFlushing, kMaxClockReads);
  };
  bool any = false;
  for (uint32_t i = 0; i < kTailRings; ++i) {
    const uint32_t count = InUse(i) ? readings(i) : 0;
    if (count == 0) continue;
    any = true;
    const ClockArea& clocks = tail_.clocks(i);
    const EventHead head{clocks.thread, clocks.seq, clocks.time_ns};
    const size_t size = EncodeClockRun(head, std::span(clocks.sources).first(count),
                                       std::span(clocks.values).first(count), event);
    writer_->AddEvent(std::span(event).first(size));
  }
  // Only when they are in the folder; who dies in between has them twice, which readers notice.
  if (!any || !WriteBatch()) return;
  for (uint32_t i = 0; i < kTailRings; ++i) {
    if (InUse(i)) tail_.clocks(i).count.store(0, std::memory_order_release);
  }
}

// Writes the batch and takes what is in it out of the rings.
bool Drainer::WriteBatch() {
  const Status written = writer_->WriteBatch();
  if (!written) {
    EventsFailed(written.error());
    return false;
  }
  for (uint32_t i = 0; i < kTailRings; ++i) {
    if (!InUse(i)) continue;
    if (ring_tails_[i] > rings_[i].tail()) rings_[i].Release(ring_tails_[i]);
  }
  FreeSpace();
  return true;
}

void Drainer::DrainEmergencySlots() {
  for (uint32_t i = 0; i < kTailEmergencySlots; ++i) {
    EmergencySlot& slot = tail_.slot(i);
    if (slot.state.load(std::memory_order_acquire) != static_cast<uint32_t>(SlotState::kComplete)) {
      continue;
    }
    writer_->AddEvent({reinterpret_cast<const std::byte*>(slot.bytes), slot.length});
    if (!WriteBatch()) return;
    slot.state.store(static_cast<uint32_t>(SlotState::kDrained), std::memory_order_release);
  }
}

// ---- When the disk refuses --------------------------------------------------------------------

void Drainer::Say(const std::string& what) {
  if (std::exchange(said_, true) || label_.empty()) return;
  const std::string line = "deja: " + label_ + ": " + what + "\n";
  (void)!write(STDERR_FILENO, line.data(), line.size());
}

// What is in the rings stays there, in case there is room again when the process ends.
void Drainer::EventsFailed(const Error& error) {
  TakeNoEvents();
  payloads_off_.store(true);
  StopSharing();
  if (degraded_reason_.empty()) degraded_reason_ = error.message;
  Say(error.message + "; what follows is not recorded");
  // For who finds the tail, should the end not reach the folder.
  if (writer_ != nullptr && !std::exchange(told_tail_, true)) {
    tail_.PutEmergency(AsBytes(EncodeDegraded(degraded_reason_)));
  }
  FreeSpace();
}

void Drainer::PayloadsFailed(const Error& error) {
  payloads_failed_ = true;
  payloads_off_.store(true);
  StopSharing();
  if (degraded_reason_.empty()) degraded_reason_ = error.message;
  Say(error.message + "; the contents of tensors are not recorded from here on");
  if (!std::exchange(told_folder_, true)) AddDegraded(degraded_reason_);
  FreeSpace();
}

std::string Drainer::EncodeDegraded(const std::string& reason) {
  Degraded degraded;
  degraded.reason = reason;
  degraded.events_lost = events_lost() + undrained_events_;
  degraded.payloads_lost = payloads_lost() + undrained_payloads_;
  degraded.payload_bytes_lost = payload_bytes_lost() + undrained_payload_bytes_;
  const EventHead head{kLogThread, log_seq_++, MonotonicNs()};
  return EncodeEventToString(head, degraded);
}

void Drainer::AddDegraded(const std::string& reason) {
  writer_->AddEvent(AsBytes(EncodeDegraded(reason)));
}

void Drainer::Flush() {
  const ScopedSignalBlock no_signals;
  mutex_.lock();
  events_too_ = true;
  if (is_rank() && finished_.load(std::memory_order_relaxed) == 0) Pass(true);
  events_too_ = false;
  mutex_.unlock();
}

bool Drainer::TryAgain() {
  if (!payloads_failed_ && !events_off_.load()) return true;
  if (!writer_->Retry()) return false;
  payloads_failed_ = false;
  events_off_.store(false);
  return true;
}

// What the disk has no room for: it is lost when the tail goes.
void Drainer::CountUndrained() {
  undrained_events_ = 0;
  for (uint32_t i = 0; i < kTailRings; ++i) {
    if (!InUse(i)) continue;
    uint64_t position = rings_[i].tail();
    const uint64_t head = rings_[i].head();
    while (position < head) {
      const EventRing::Record record = rings_[i].Read(position, head, scratch_);
      if (record.event.empty()) break;
      position += record.bytes;
      ++undrained_events_;
    }
  }
  arena_.CountPending(undrained_payloads_, undrained_payload_bytes_);
}

// What the disk has refused may find room now. If it does not, the room that was kept serves to say
// how the recording ends and what it lacks. False if even that fails: the tail then still has all.
bool Drainer::FinishFiles() {
  events_too_ = true;
  const auto failed = [this] { return events_off_.load() || payloads_failed_; };
  for (int attempt = 0; attempt < 2; ++attempt) {
    if (!TryAgain()) return false;
    Drain();
    if (!failed()) break;
  }
  if (failed()) {
    if (!TryAgain()) return false;
    writer_->SpendReserve();
    CountUndrained();
  }
  DrainClocks();
  DrainEmergencySlots();
  if (window_.marked_end() != 0) writer_->MarkSegments(0, window_.marked_end() - 1);
  Footer footer;
  footer.events_lost = events_lost() + undrained_events_;
  footer.payloads_lost = payloads_lost() + undrained_payloads_;
  footer.pressure = tail_.pressure();
  if (!degraded_reason_.empty() || footer.events_lost != 0 || footer.payloads_lost != 0) {
    AddDegraded(degraded_reason_.empty() ? "payloads were dropped under pressure"
                                         : degraded_reason_);
  }
  if (events_off_.load()) return false;
  Publish(true);
  const Status finished = writer_->Finish(footer);
  if (!finished) EventsFailed(finished.error());
  return finished.has_value();
}

// Everything that was accepted is in the tail or in the folder by now.
void Drainer::FinishNow() {
  if (finished_.load(std::memory_order_relaxed) != 0) return;
  if (!is_rank()) {
    RemovePending();
    tail_.Remove();
  } else if (FinishFiles() || FinishFiles()) {
    writer_->ReleaseReserve();
    tail_.header().state.store(static_cast<uint32_t>(TailState::kFinished),
                               std::memory_order_release);
    tail_.Remove();
  }
  // Otherwise the tail stays: what it holds may still be saved (recovery.h).
  spare_.CloseAll();
  TakeNoEvents();
  payloads_off_.store(true);
  finished_.store(1, std::memory_order_release);
  FutexWake(finished_, INT32_MAX);
  FreeSpace();
}

void Drainer::Finish() {
  if (finished_.load(std::memory_order_acquire) != 0) return;
  // A forked child without Deja's fork hook has neither the mapping nor the thread.
  if (getpid() != owner_pid_) return;
  finish_requested_.store(true, std::memory_order_release);
  if (thread_state_.load(std::memory_order_acquire) == ThreadState::kRunning) {
    // The caller may be a signal handler on a small stack: the work is done on the thread's.
    for (int waited = 0; waited < kMaxWaits; ++waited) {
      wake_.store(1, std::memory_order_release);
      FutexWake(wake_, 1);
      FutexWait(finished_, 0, kWaitMs);
      if (finished_.load(std::memory_order_acquire) != 0) return;
    }
    return;
  }
  const ScopedSignalBlock no_signals;
  mutex_.lock();
  FinishNow();
  mutex_.unlock();
}

void Drainer::EndThread() {
  if (finished_.load(std::memory_order_acquire) == 0 ||
      thread_state_.exchange(ThreadState::kImpossible) != ThreadState::kRunning)
    return;
  pthread_join(thread_, nullptr);
}

void Drainer::AbandonInChild() {
  thread_state_.store(ThreadState::kImpossible);  // it lives in the parent
  TakeNoEvents();
  payloads_off_.store(true);
  if (writer_ != nullptr) writer_->CloseInChild();
  tail_.CloseInChild();
  spare_.CloseAll();
}

}  // namespace deja::format
