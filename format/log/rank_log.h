// RankLog: the storage of one recorded process, on the writing side.
//
// Life: Create() makes only the tail, into which threads append events and payloads: a shared
// mapping in /dev/shm, or else in the trace's folder. BecomeRank() makes the rank's folder and
// starts the background thread. That thread compresses what is in the tail, writes it to the folder
// and frees its place. If the tail fills before that, the background thread spills into a pending
// folder that BecomeRank() renames. Finish() drains the rest, writes index and footer and removes
// the tail. A process that dies at any moment, SIGKILL included, leaves a tail from which
// format/repair/recovery.h completes the folder; nothing that Append or PutPayload has accepted is
// lost.
//
// Owner: the recorder, one per process, never destroyed. Threads: as said at each function.
// Failures of the disk never reach the caller. The log degrades: it counts what it drops, says so
// once on stderr and in the trace, and goes on accepting and discarding.
#ifndef DEJA_FORMAT_LOG_RANK_LOG_H_
#define DEJA_FORMAT_LOG_RANK_LOG_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "common/ids.h"
#include "common/result.h"
#include "format/log/background.h"
#include "format/tail/ring_producer.h"
#include "format/tail/tail_format.h"
#include "format/tensor/tensor_codec.h"
#include "format/window/payload_window.h"
#include "format/wire/messages.h"

namespace deja {
class AppendFile;
}  // namespace deja

namespace deja::format {

enum class PressurePolicy { kBlock, kDropPayload };

struct RankLogOptions {
  std::string trace_dir;                   // NAME.deja, made by `deja record`
  std::string tail_dir = "/dev/shm";       // tried first; then trace_dir
  std::string job_id = {};                 // 32 hex digits; becomes part of the tail's name
  size_t ring_bytes = 256 << 10;           // of each thread's event ring; power of two
  size_t first_payload_bytes = 256 << 10;  // so much of the arena has memory from the start
  size_t payload_bytes = 64 << 20;         // of the payload arena: the memory budget of --buffer
  PressurePolicy on_pressure = PressurePolicy::kBlock;
  // Copies for each host of results that several ranks share (SharedPieces); 0: each rank keeps its
  // own. Takes effect with BecomeRank.
  uint32_t copies = 0;
  // Memory for what was kept last of each series, to write differences to it; 0: none are written.
  uint64_t base_memory = 0;
  CodecEffort effort = CodecEffort::kSmall;
  // What is kept when not everything is. Takes effect with BecomeRank.
  WindowOptions window = {};
  // In a child process: its payloads go with the window of the rank that it comes from.
  WindowOrigin origin = {};
  // The window is marked when no rank of the machine has been in a collective for so long.
  uint64_t hang_after_seconds = 0;
  BackgroundOptions background = {};
  // Tests put something around each of the rank's files with it.
  std::unique_ptr<AppendFile> (*wrap_file)(std::unique_ptr<AppendFile> file) = nullptr;
};

struct RankLogCounters {
  uint64_t events = 0;
  uint64_t payloads = 0;  // distinct, kept
  uint64_t payload_bytes = 0;
  uint64_t events_lost = 0;
  uint64_t payloads_lost = 0;
  uint64_t payload_bytes_lost = 0;
};

class EventSink;

// What became of a payload: PutPayload's answer.
struct Placed {
  bool kept = false;
  uint32_t segment = 0;  // kept in this segment or a later one; for Tensor.segment and the like
};

class RankLog {
 public:
  static Result<std::unique_ptr<RankLog>> Create(const RankLogOptions& options);
  // Makes Create() quick if it is called while the process has one thread. What both ask of the
  // kernel takes it up to 15 ms in a process that has several.
  static void BeforeThreads();
  virtual ~RankLog() = default;

  // The sink of one thread; never null (when all rings are taken, threads share one under a lock).
  // Any thread. The sink belongs to the log; give it back with ReleaseSink when the thread ends.
  virtual EventSink* ClaimSink(ThreadIndex thread) = 0;
  virtual void ReleaseSink(EventSink* sink) = 0;

  // Keeps `bytes` under `hash` unless that hash is already kept, by this rank or by one that it
  // shares payloads with. Copies before it returns. Not kept if
  // it was dropped (policy, or the log is degraded). Any thread; no lock is held while copying.
  // Blocks when the arena is full and the policy is kBlock. `element_size` (1, 2, 4, 8) helps the
  // codec.
  Placed PutPayload(const Hash128& hash, std::span<const std::byte> bytes, uint32_t element_size) {
    return PutPayload(hash, bytes, element_size, 0);
  }
  // `series`: a number of at most 24 bits that the payload has in common with earlier ones that may
  // differ little from it (PayloadBases); 0: there are none.
  virtual Placed PutPayload(const Hash128& hash, std::span<const std::byte> bytes,
                            uint32_t element_size, uint32_t series) = 0;

  // Where payloads that are put now are kept, or in a later one. Any thread; a load.
  [[nodiscard]] virtual uint32_t current_segment() const = 0;
  // The `step`-th step of the program begins, counting from 1: what follows is its.
  virtual void BeginStep(uint64_t step) = 0;
  // What has been kept since that step began is a checkpoint, or at the first step equal to one. A
  // window of steps reaches back to one.
  virtual void KeepCheckpoint(uint64_t step) = 0;

  // Makes `rank-NNNNN` (or `rank-NNNNN.A`, A the first attempt number that is free) in the trace
  // and starts writing. The header's tail, attempt and producer are filled in here. Once; any
  // thread.
  virtual Status BecomeRank(TraceHeader header) = 0;
  // The same for a process that is no rank but was made by one, or may have been: a folder of its
  // own, `child-PID-NONCE`. It may become a rank later.
  virtual Status BecomeChild(TraceHeader header) = 0;
  // True once there is a folder, of either kind.
  [[nodiscard]] virtual bool is_rank() const = 0;
  // Absolute path of the rank's folder; empty before BecomeRank.
  [[nodiscard]] virtual const std::string& folder() const = 0;

  // Waits until all that was appended before the call has been written. For tests and orderly ends.
  virtual void Flush() = 0;
  // Drains, writes index and footer, removes the tail (and everything else if this never became a
  // rank). Afterwards appends are discarded. Safe to call more than once. Not async-signal-safe.
  virtual void Finish() = 0;

  // After Finish: the background thread is gone when this returns, if it was not too busy to end.
  virtual void EndThread() = 0;

  // In the child after fork: forgets the parent's log without touching its memory or files.
  virtual void AbandonInChild() = 0;

  // For an event that cannot go through a sink: a signal handler that interrupted its own thread's
  // Append. A few of them are kept beside the rings and come last in the recording. At most
  // kMaxEmergencyBytes; false if there is no room. Async-signal-safe, never waits.
  virtual bool AppendEmergency(std::span<const std::byte> encoded_event) = 0;

  // Numbers since the log was made. Any thread.
  [[nodiscard]] virtual RankLogCounters counters() const = 0;
};

// Where one thread appends its events. Single producer: only its thread calls it (a signal handler
// on that thread may, if it interrupted no Append: see `busy`).
class EventSink {
 public:
  virtual ~EventSink() = default;
  // Appends one encoded Event (a serialized deja.v1.Event, at most kMaxEventBytes). It is durable
  // against SIGKILL when this returns. Waits while the ring is full. False if discarded. No
  // allocation, no syscall unless it waits.
  virtual bool Append(std::span<const std::byte> encoded_event) = 0;
  // The same of an event that has not been encoded, in half the time. False where it has to
  // be (no room, a large one, a log that takes none): then Append decides what becomes of it.
  template <typename Body>
  bool AppendRaw(const EventHead& head, const Body& body) {
    if (clocks_pending_) FlushClocks();
    return producer_.TryAppendRaw(head, body);
  }
  // True while this thread is inside Append: a signal handler must then use RankLog's emergency
  // slot.
  [[nodiscard]] virtual bool busy() const = 0;
  // While it is busy: the event that was being appended is there.
  [[nodiscard]] bool has_published() const { return producer_.has_published(); }

  // Where this thread may put clock readings, in the shared mapping: they are durable once
  // ClockArea::count says so. Null: there is no such place, each reading is an event of its own.
  [[nodiscard]] ClockArea* clocks() const { return clocks_; }
  // Before the first reading is put there.
  void ExpectClocks() { clocks_pending_ = true; }
  // Makes an event of what is in clocks(): before any other event, and when the area is full. The
  // area is empty afterwards, unless the log has been finished.
  virtual void FlushClocks() {}

 protected:
  ClockArea* clocks_ = nullptr;
  bool clocks_pending_ = false;  // perhaps there are readings
  RingProducer producer_;
};

// Event.thread of what the log itself has to say (Degraded, when the disk refuses); its seq counts
// from 0 like every thread's. No ThreadStart belongs to it.
inline constexpr ThreadIndex kLogThread = 0xffffffffu;

}  // namespace deja::format

#endif  // DEJA_FORMAT_LOG_RANK_LOG_H_
