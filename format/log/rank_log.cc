#include "format/log/rank_log.h"

#include <linux/membarrier.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "common/runtime/futex.h"
#include "common/runtime/thread_mark.h"
#include "format/log/drainer.h"
#include "format/tail/clock_run.h"
#include "format/tail/event_ring.h"
#include "format/tail/payload_arena.h"
#include "format/tail/tail.h"
#include "format/tensor/payload_series.h"
#include "format/window/shared_pieces.h"
#include "format/wire/wire.h"

namespace deja::format {
namespace {

class RankLogImpl;

// How long Finish waits for threads that are inside Append or PutPayload.
constexpr int kMaxYields = 10000;

class RingSink : public EventSink {
 public:
  void Attach(RankLogImpl* log, EventRing& ring, Tail& tail, uint32_t number) {
    log_ = log;
    producer_.Attach(&tail.ring(number), tail.ring_bytes(number), tail.header().ring_bytes,
                     &ring.gate());
    if (number != kTailSharedRing) clocks_ = &tail.clocks(number);
  }
  bool Append(std::span<const std::byte> encoded_event) override;
  void FlushClocks() override;
  [[nodiscard]] bool busy() const override { return producer_.busy(); }

 private:
  bool AppendBusy(std::span<const std::byte> encoded_event);

  RankLogImpl* log_ = nullptr;
};

// For the threads that find all rings taken, and when there is no memory for another.
class SharedSink final : public RingSink {
 public:
  bool Append(std::span<const std::byte> encoded_event) override {
    if (owner_.load(std::memory_order_relaxed) == ThreadMark()) return false;
    mutex_.lock();
    owner_.store(ThreadMark(), std::memory_order_relaxed);
    const bool kept = RingSink::Append(encoded_event);
    owner_.store(nullptr, std::memory_order_relaxed);
    mutex_.unlock();
    return kept;
  }
  [[nodiscard]] bool busy() const override {
    return owner_.load(std::memory_order_relaxed) == ThreadMark();
  }
  [[nodiscard]] bool InUse() const { return RingSink::busy(); }

 private:
  FutexMutex mutex_;
  std::atomic<const void*> owner_{nullptr};
};

Drainer::Options DrainerOptions(const RankLogOptions& options) {
  return {options.trace_dir,   options.background, options.hang_after_seconds,
          options.base_memory, options.effort,     options.wrap_file};
}

class RankLogImpl final : public RankLog {
 public:
  RankLogImpl(std::unique_ptr<Tail> tail, const RankLogOptions& options)
      : tail_(std::move(tail)),
        policy_(options.on_pressure),
        tail_dir_(options.tail_dir),
        job_id_(options.job_id),
        copies_(options.copies),
        window_(options.window),
        arena_(*tail_),
        drainer_(*tail_, arena_, window_, rings_, DrainerOptions(options)) {
    Attach(kTailSharedRing);
    shared_sink_.Attach(this, rings_[kTailSharedRing], *tail_, kTailSharedRing);
    if (window_.moves() && !options.origin.path.empty())
      if (WindowBoard* board = WindowBoard::OfJob(tail_dir_, job_id_))
        window_.Watch(*board, options.origin);
  }

  EventSink* ClaimSink(ThreadIndex thread) override;
  void ReleaseSink(EventSink* sink) override;
  Placed PutPayload(const Hash128& hash, std::span<const std::byte> bytes, uint32_t element_size,
                    uint32_t series) override;
  [[nodiscard]] uint32_t current_segment() const override { return window_.segment(); }
  void BeginStep(uint64_t step) override {
    if (!closed()) window_.BeginStep(step);
  }
  void KeepCheckpoint(uint64_t step) override {
    if (!closed()) window_.KeepCheckpoint(step);
  }
  bool AppendEmergency(std::span<const std::byte> encoded_event) override {
    return !closed() && tail_->PutEmergency(encoded_event);
  }

  Status BecomeRank(TraceHeader header) override {
    if (closed()) return Fail(ErrorCode::kInvalidArgument, "the log has been finished");
    window_.ShareBudget(tail_dir_, job_id_);
    if (shared_ == nullptr && header.world_size != 1)
      shared_ = SharedPieces::Open(tail_dir_, job_id_, copies_);
    if ((shared_ != nullptr || window_.moves()) && !JoinBoard(header.origin)) shared_ = nullptr;
    if (shared_ != nullptr) header.shares_with = shared_->id();
    DEJA_RETURN_IF_ERROR(drainer_.BecomeRank(std::move(header)));
    drainer_.SetShared(shared_.get());
    sharing_.store(shared_.get(), std::memory_order_release);
    return {};
  }
  Status BecomeChild(TraceHeader header) override {
    if (closed()) return Fail(ErrorCode::kInvalidArgument, "the log has been finished");
    window_.ShareBudget(tail_dir_, job_id_);
    return drainer_.BecomeChild(std::move(header));
  }
  [[nodiscard]] bool is_rank() const override { return drainer_.is_rank(); }
  [[nodiscard]] const std::string& folder() const override { return drainer_.folder(); }
  void Flush() override {
    if (!closed()) drainer_.Flush();
  }
  void Finish() override;
  void EndThread() override { drainer_.EndThread(); }
  void AbandonInChild() override {
    closed_.store(true);
    abandoned_.store(true);
    drainer_.AbandonInChild();
  }
  [[nodiscard]] RankLogCounters counters() const override;

  [[nodiscard]] bool closed() const { return closed_.load(std::memory_order_relaxed); }
  Drainer& drainer() { return drainer_; }
  Tail& tail() { return *tail_; }

 private:
  enum class Owner : uint8_t { kNobody, kThread, kReleased };
  struct Claim {
    Owner owner = Owner::kNobody;
    ThreadIndex thread = 0;
  };

  // With the other ranks of the machine.
  bool JoinBoard(const ProcessOrigin& origin) {
    WindowBoard* board = WindowBoard::OfJob(tail_dir_, job_id_);
    return board != nullptr && window_.Join(*board, WindowBoard::NameOf(origin.root, origin.path));
  }
  void Attach(uint32_t ring) {
    rings_[ring].Attach(&tail_->ring(ring), tail_->ring_bytes(ring), tail_->header().ring_bytes);
    tail_->ring(ring).used.store(1, std::memory_order_release);
  }
  EventSink* Take(uint32_t ring, ThreadIndex thread) {
    claims_[ring] = {Owner::kThread, thread};
    return &sinks_[ring];
  }
  struct Put {
    const Hash128& hash;
    std::span<const std::byte> bytes;
    uint32_t kind;  // BlockKind
    uint32_t segment;
  };
  BlockHeader* PutBlock(const Put& put, uint64_t offset, uint64_t wanted);
  bool DropUnderPressure(uint64_t bytes) {
    drainer_.Wake();
    tail_->CountPressureDrop(bytes);
    return false;
  }
  bool PutWhole(const Put& put);
  bool PutPiece(const Put& put, uint64_t piece);
  bool PutShared(SharedPieces& shared, const Put& put);
  void WaitForThreads();

  const std::unique_ptr<Tail> tail_;
  const PressurePolicy policy_;
  const std::string tail_dir_;
  const std::string job_id_;
  const uint32_t copies_;
  std::unique_ptr<SharedPieces> shared_;
  std::atomic<SharedPieces*> sharing_{nullptr};  // set once this is a rank
  EventRing rings_[kTailRings];
  RingSink sinks_[kTailRings];
  SharedSink shared_sink_;
  PayloadWindow window_;
  PayloadArena arena_;
  Drainer drainer_;
  FutexMutex claim_mutex_;
  Claim claims_[kTailRings];
  std::atomic<bool> closed_{false};
  std::atomic<bool> abandoned_{false};
  std::atomic<uint32_t> puts_{0};  // threads inside PutPayload
  std::atomic<uint64_t> payloads_{0};
  std::atomic<uint64_t> payload_bytes_{0};
};

// Counts the time that its thread waits for room.
class WaitTimer {
 public:
  explicit WaitTimer(Tail& tail) : tail_(tail), began_ns_(MonotonicNs()) {}
  ~WaitTimer() { tail_.CountWait(MonotonicNs() - began_ns_); }
  WaitTimer(const WaitTimer&) = delete;
  WaitTimer& operator=(const WaitTimer&) = delete;

 private:
  Tail& tail_;
  const uint64_t began_ns_;
};

bool SaysHowItEnds(std::span<const std::byte> encoded_event) {
  WireReader reader(encoded_event);
  uint32_t field = 0;
  WireType type{};
  while (reader.Tag(field, type)) {
    if (field == static_cast<uint32_t>(EventKind::kCrash) ||
        field == static_cast<uint32_t>(EventKind::kProcessExit)) {
      return true;
    }
    reader.Skip(type);
  }
  return false;
}

// ---- Events -----------------------------------------------------------------------------------

bool RingSink::Append(std::span<const std::byte> encoded_event) {
  producer_.SetBusy();
  const bool kept = AppendBusy(encoded_event);
  producer_.SetIdle();
  return kept;
}

bool RingSink::AppendBusy(std::span<const std::byte> encoded_event) {
  if (log_->closed()) return false;
  Drainer& drainer = log_->drainer();
  if (encoded_event.empty() || encoded_event.size() > kMaxEventBytes) {
    drainer.CountLostEvent();
    return false;
  }
  if (drainer.events_off().load(std::memory_order_relaxed)) {
    // How the process ends is written in any case.
    if (SaysHowItEnds(encoded_event) && log_->AppendEmergency(encoded_event)) return true;
    drainer.CountLostEvent();
    return false;
  }
  if (!producer_.TryAppend(encoded_event)) {
    int waited = 0;
    const WaitTimer timer(log_->tail());
    for (;;) {
      const uint32_t seen = drainer.Seen();
      if (producer_.TryAppend(encoded_event)) break;
      if (!drainer.Wait(seen, drainer.events_off(), waited)) {
        drainer.CountLostEvent();
        return false;
      }
    }
  }
  if (producer_.WantsDrain()) drainer.Wake();
  return true;
}

void RingSink::FlushClocks() {
  const uint32_t count = clocks_->count.load(std::memory_order_relaxed);
  if (count == 0 || count > kMaxClockReads) return;  // nothing, or this has been interrupted
  producer_.SetBusy(true);
  // What a finished log still has there is its own to read.
  if (!log_->closed()) {
    std::byte event[kMaxClockRunBytes];
    const EventHead head{clocks_->thread, clocks_->seq, clocks_->time_ns};
    const size_t size = EncodeClockRun(head, std::span(clocks_->sources).first(count),
                                       std::span(clocks_->values).first(count), event);
    clocks_->records_before = producer_.records();
    clocks_->count.store(count | ClockArea::kFlushing, std::memory_order_release);
    (void)AppendBusy(std::span(event).first(size));
    clocks_->count.store(0, std::memory_order_release);
    clocks_pending_ = false;
  }
  producer_.SetIdle();
}

EventSink* RankLogImpl::ClaimSink(ThreadIndex thread) {
  if (closed()) return &shared_sink_;
  claim_mutex_.lock();
  EventSink* sink = nullptr;
  uint32_t empty_one = kTailRings;
  uint32_t fresh_one = kTailRings;
  for (uint32_t i = 0; i < kTailRings && sink == nullptr; ++i) {
    if (i == kTailSharedRing) continue;
    const Claim& claim = claims_[i];
    if (claim.owner == Owner::kNobody) {
      if (fresh_one == kTailRings) fresh_one = i;
    } else if (claim.owner == Owner::kReleased) {
      // What a thread has in a ring must be drained before what it has in another one. It gets its
      // own back, or one that other threads get only when it is empty.
      if (claim.thread == thread) {
        sink = Take(i, thread);
      } else if (empty_one == kTailRings && rings_[i].tail() == rings_[i].head()) {
        empty_one = i;
      }
    }
  }
  if (sink == nullptr && empty_one != kTailRings) sink = Take(empty_one, thread);
  if (sink == nullptr && fresh_one != kTailRings && tail_->PrepareRing(fresh_one)) {
    Attach(fresh_one);
    sinks_[fresh_one].Attach(this, rings_[fresh_one], *tail_, fresh_one);
    sink = Take(fresh_one, thread);
  }
  claim_mutex_.unlock();
  return sink != nullptr ? sink : &shared_sink_;
}

void RankLogImpl::ReleaseSink(EventSink* sink) {
  if (closed() || sink == nullptr || sink == &shared_sink_) return;
  const auto ring = static_cast<size_t>(static_cast<RingSink*>(sink) - sinks_);
  if (ring >= kTailRings) return;
  claim_mutex_.lock();
  if (claims_[ring].owner == Owner::kThread) claims_[ring].owner = Owner::kReleased;
  claim_mutex_.unlock();
}

// ---- Payloads ---------------------------------------------------------------------------------

Placed RankLogImpl::PutPayload(const Hash128& hash, std::span<const std::byte> bytes,
                               uint32_t element_size, uint32_t series) {
  puts_.fetch_add(1);
  bool kept = false;
  uint32_t segment = 0;
  if (!closed_.load()) {
    bool refused = false;
    // What is kept from here on is in this one or in a later one.
    segment = window_.segment();
    if (!drainer_.payloads_off().load(std::memory_order_relaxed) && !hash.IsZero()) {
      kept = arena_.Known(hash, segment, refused);
      if (!kept && !refused) {
        const bool known_size =
            element_size == 1 || element_size == 2 || element_size == 4 || element_size == 8;
        const Put put{hash, bytes, BlockKind(known_size ? element_size : 1, series & kMostSeries),
                      segment};
        SharedPieces* shared = sharing_.load(std::memory_order_acquire);
        kept = shared != nullptr && bytes.size() >= SharedPieces::kLeastBytes
                   ? PutShared(*shared, put)
                   : PutWhole(put);
      }
    }
    if (!kept) drainer_.CountLostPayload(bytes.size());
  }
  puts_.fetch_sub(1);
  return {kept, segment};
}

// Copies as much as fits of `wanted` bytes at `offset` into a block that is not committed yet. Null
// if there is no room for it and none will come.
BlockHeader* RankLogImpl::PutBlock(const Put& put, uint64_t offset, uint64_t wanted) {
  const bool may_wait = policy_ == PressurePolicy::kBlock;
  BlockHeader* block = nullptr;
  uint64_t size = 0;
  std::optional<WaitTimer> timer;
  int waited = 0;
  for (;;) {
    const uint32_t seen = drainer_.Seen();
    const PayloadArena::Room room = arena_.Reserve(wanted, block, size);
    if (room == PayloadArena::Room::kYes) break;
    if (room == PayloadArena::Room::kNever) return nullptr;
    drainer_.Wake();
    if (!may_wait) return nullptr;
    if (!timer) timer.emplace(*tail_);
    if (!drainer_.Wait(seen, drainer_.payloads_off(), waited)) return nullptr;
  }
  block->kind = put.kind;
  std::memcpy(block->hash, put.hash.bytes.data(), sizeof block->hash);
  block->total_size = put.bytes.size();
  block->offset = offset;
  block->size = size;
  block->segment = put.segment;
  block->step = static_cast<uint32_t>(window_.step());
  if (size != 0)
    std::memcpy(reinterpret_cast<std::byte*>(block + 1), put.bytes.data() + offset, size);
  return block;
}

bool RankLogImpl::PutWhole(const Put& put) {
  const uint64_t total = put.bytes.size();
  if (policy_ != PressurePolicy::kBlock && BlockBytes(total) > arena_.free_bytes())
    return DropUnderPressure(total);
  BlockHeader* block = nullptr;
  uint64_t offset = 0;
  do {
    if (block != nullptr) arena_.Commit(block);
    block = PutBlock(put, offset, total - offset);
    if (block == nullptr) return false;
    offset += block->size;
  } while (offset != total);
  const bool only_one = block->size == total;
  if (!only_one) arena_.Commit(block);
  if (arena_.Remember(put.hash, put.segment, only_one ? block : nullptr)) {
    payloads_.fetch_add(1, std::memory_order_relaxed);
    payload_bytes_.fetch_add(total, std::memory_order_relaxed);
    window_.AddBytes(put.segment, total, arena_.used());
  }
  if (arena_.used() >= arena_.high_water()) drainer_.Wake();
  return true;
}

bool RankLogImpl::PutPiece(const Put& put, uint64_t piece) {
  uint64_t offset = piece * SharedPieces::kPieceBytes;
  const uint64_t end = std::min<uint64_t>(put.bytes.size(), offset + SharedPieces::kPieceBytes);
  if (policy_ != PressurePolicy::kBlock && BlockBytes(end - offset) > arena_.free_bytes())
    return DropUnderPressure(put.bytes.size());
  payload_bytes_.fetch_add(end - offset, std::memory_order_relaxed);
  window_.AddBytes(put.segment, end - offset, arena_.used());
  while (offset != end) {
    BlockHeader* block = PutBlock(put, offset, end - offset);
    if (block == nullptr) return false;
    offset += block->size;
    arena_.Commit(block);
  }
  if (arena_.used() >= arena_.high_water()) drainer_.Wake();
  return true;
}

// Takes what no thread has taken yet, at first without waiting for those that are at work; then
// what these did not get done.
bool RankLogImpl::PutShared(SharedPieces& shared, const Put& put) {
  const uint64_t pieces =
      (put.bytes.size() + SharedPieces::kPieceBytes - 1) / SharedPieces::kPieceBytes;
  const uint64_t first = shared.FirstPiece(pieces);
  const uint64_t key = window_.ShareKey(put.segment);
  bool any = false;
  for (const bool wait : {false, true}) {
    bool elsewhere = false;
    for (uint64_t i = 0; i < pieces; ++i) {
      const uint64_t piece = (first + i) % pieces;
      const SharedPieces::Claimed claimed =
          wait ? shared.Await(put.hash, piece, key) : shared.Claim(put.hash, piece, key);
      if (claimed == SharedPieces::Claimed::kKept) continue;
      if (claimed == SharedPieces::Claimed::kElsewhere && !wait) {
        elsewhere = true;
        continue;
      }
      if (!PutPiece(put, piece)) {
        shared.Release(put.hash, piece, key);
        return false;
      }
      // Not before it is safe: who finds it kept relies on it.
      shared.Keep(put.hash, piece, key);
      any = true;
    }
    if (!elsewhere) break;
  }
  arena_.Remember(put.hash, put.segment, nullptr);
  if (any) payloads_.fetch_add(1, std::memory_order_relaxed);
  return true;
}

// ---- Life -------------------------------------------------------------------------------------

// Until no thread is inside Append or PutPayload: after `closed_` none gets in.
void RankLogImpl::WaitForThreads() {
  if (syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) != 0) usleep(1000);
  const auto anybody = [this] {
    if (puts_.load() != 0 || shared_sink_.InUse()) return true;
    return std::any_of(std::begin(sinks_), std::end(sinks_),
                       [](const RingSink& sink) { return sink.busy(); });
  };
  for (int i = 0; i < kMaxYields && anybody(); ++i) sched_yield();
}

void RankLogImpl::Finish() {
  if (abandoned_.load()) return;
  closed_.store(true);
  for (EventRing& ring : rings_) ring.Close();
  WaitForThreads();
  window_.Close();
  drainer_.Finish();
}

RankLogCounters RankLogImpl::counters() const {
  RankLogCounters counters;
  if (abandoned_.load()) return counters;
  for (uint32_t i = 0; i < kTailRings; ++i) {
    if (tail_->ring(i).used.load(std::memory_order_acquire) != 0) {
      counters.events += rings_[i].records();
    }
  }
  counters.payloads = payloads_.load();
  counters.payload_bytes = payload_bytes_.load();
  counters.events_lost = drainer_.events_lost();
  counters.payloads_lost = drainer_.payloads_lost();
  counters.payload_bytes_lost = drainer_.payload_bytes_lost();
  return counters;
}

}  // namespace

Result<std::unique_ptr<RankLog>> RankLog::Create(const RankLogOptions& options) {
  TailOptions tail_options;
  tail_options.directories = {options.tail_dir, options.trace_dir};
  tail_options.job_id = options.job_id;
  tail_options.ring_bytes = options.ring_bytes;
  tail_options.arena_bytes = options.payload_bytes;
  tail_options.first_arena_bytes = options.first_payload_bytes;
  DEJA_ASSIGN_OR_RETURN(std::unique_ptr<Tail> tail, Tail::Create(tail_options));
  BeforeThreads();  // a process that was forked, or has loaded this library late, has not asked yet
  return std::make_unique<RankLogImpl>(std::move(tail), options);
}

void RankLog::BeforeThreads() {
  (void)syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0);
}

}  // namespace deja::format
