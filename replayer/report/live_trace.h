// LiveTrace: what the replayed program really does, as a trace of its own (deja replay --out).
//
// It has the calls that belong to communicators, with digests of what the program gave to them and
// the results as they were served; snapshots; steps, notes, threads. Each event has the time of its
// counterpart in the recording, so that both lie on one time line; what has none comes right
// after what was written last.
//
// One per replayed rank, made with its session, never destroyed. Any thread, inside the guard; one
// lock, which is not held across anything of the program's. A disk that refuses is the log's
// matter (format/log/rank_log.h). Nothing is finished here: `deja replay` completes the folder when
// the process is gone, however it ended.
#ifndef DEJA_REPLAYER_REPORT_LIVE_TRACE_H_
#define DEJA_REPLAYER_REPORT_LIVE_TRACE_H_

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <string_view>

#include "common/result.h"
#include "common/runtime/spin_lock.h"
#include "format/log/rank_log.h"
#include "format/reader/rank_reader.h"
#include "format/wire/message_codec.h"
#include "preload/calls/buffers.h"
#include "preload/calls/call.h"
#include "preload/calls/step_calls.h"
#include "preload/process/threads.h"
#include "preload/stack/stack.h"
#include "replayer/plan/replay_plan.h"

namespace deja::replayer {

// An operation that the program enters, as a trace of the replay has it.
struct LiveInput {
  uint32_t index = kNone;  // in the plan's calls
  const preload::Call& call;
  uint32_t comm = 0;  // number + 1
  const preload::BufferUse& input;
  const preload::BufferUse& output;
  uint64_t stream = 0;
  bool captured = false;  // into a CUDA graph
};

struct LiveTraceOptions {
  std::string out;        // where the trace is made
  std::string job_id;     // that it is part of
  std::string recording;  // as the user named it
};

class LiveTrace final : public preload::StackSink {
 public:
  // Makes the folder of the rank in options.out. From then on it gets the stacks of the program.
  static Result<LiveTrace*> Open(const LiveTraceOptions& options,
                                 const format::RankReader& recording, const ReplayPlan& plan);

  // An operation is entered: what it reads is digested here. The event's number, for Leave.
  uint64_t Enter(const LiveInput& operation, uint64_t comm_seq, uint32_t group_depth);
  // Any other call of a library, on communicator number `comm` - 1 (0: none).
  uint64_t Enter(const preload::Call& call, uint32_t comm, const RecordedCall& recorded);
  void Leave(uint64_t enter_seq, int64_t result, const RecordedCall& recorded);
  // The recorded results of a call are in the program's buffers.
  void Results(const RecordedCall& recorded);
  void Comm(const RecordedComm& comm);
  void Snapshot(const preload::SnapshotCall& call, const RecordedSnapshot* recorded);
  void Step(uint64_t step) { Write(format::Step{step}, 0); }
  void Note(std::string_view text);
  // The program goes on after the checkpoint.
  void StartLate(uint64_t checkpoint_ns) { last_ns_ = std::max(last_ns_, checkpoint_ns); }
  void EndThread();
  // Gives up after a moment: a handler may have interrupted a thread that is writing.
  void Exit(int code, uint32_t how);

  // In a child after fork.
  void AbandonInChild() { log_->AbandonInChild(); }

  void OnModule(const format::ModuleLoaded& module) override { Write(module, 0); }
  void OnStack(const format::StackDefined& stack) override { Write(stack, 0); }

 private:
  // One thread's events.
  struct Stream {
    format::EventSink* sink = nullptr;
    ThreadIndex index = 0;
    uint64_t next_seq = 0;
    uint64_t last_ns = 0;
  };

  LiveTrace(std::unique_ptr<format::RankLog> log, const ReplayPlan& plan, uint64_t begin_ns)
      : log_(std::move(log)), plan_(plan), last_ns_(begin_ns) {}
  Status BecomeRank(const LiveTraceOptions& options, const format::TraceHeader& recorded);

  // `recorded_ns`: of the counterpart; 0: it has none.
  template <typename Body>
  uint64_t Write(const Body& body, uint64_t recorded_ns) {
    lock_.Lock();
    const uint64_t seq = WriteLocked(body, recorded_ns);
    lock_.Unlock();
    return seq;
  }
  template <typename Body>
  uint64_t WriteLocked(const Body& body, uint64_t recorded_ns) {
    Stream& stream = StreamLocked();
    return AppendLocked(stream, body, recorded_ns);
  }
  template <typename Body>
  uint64_t AppendLocked(Stream& stream, const Body& body, uint64_t recorded_ns) {
    stream.last_ns = std::max(stream.last_ns, recorded_ns != 0 ? recorded_ns : last_ns_ + 1);
    last_ns_ = std::max(last_ns_, stream.last_ns);
    const format::EventHead head{stream.index, stream.next_seq++, stream.last_ns};
    stream.sink->Append(std::span(buffer_.data(), format::EncodeEvent(head, body, buffer_)));
    return head.seq;
  }
  Stream& StreamLocked();
  void WriteDeviceInput(const LiveInput& operation, const format::CallEnter& enter,
                        uint64_t recorded_ns);
  void FillEnter(const preload::Call& call, uint32_t comm, const RecordedCall* recorded,
                 format::CallEnter& enter);

  const std::unique_ptr<format::RankLog> log_;
  const ReplayPlan& plan_;
  SpinLock lock_;  // guards what follows
  uint64_t last_ns_;
  ThreadIndex next_index_ = 0;
  std::map<const preload::ThreadRecord*, Stream> streams_;
  std::array<std::byte, format::kMaxEventBytes> buffer_;
};

}  // namespace deja::replayer

#endif  // DEJA_REPLAYER_REPORT_LIVE_TRACE_H_
