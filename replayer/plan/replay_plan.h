// ReplayPlan: what one rank recorded, indexed by how a replay asks for it.
//
// Built once, before the program's first event, by reading the rank's events: all of them, or what
// a replay from a checkpoint needs (plan_events.h). Afterwards it is constant and any thread may
// read it. It owns copies of what it needs, apart from the arguments and tensors of calls. These
// are most of a long recording, and are read from the reader when they are asked for
// (plan_pages.h). So the reader outlives the plan.
//
// A trace is untrusted: what does not fit together is an error or is left out, never a crash.
// Examples: an operation number that no recording can have, a reference to something that was never
// defined.
#ifndef DEJA_REPLAYER_PLAN_REPLAY_PLAN_H_
#define DEJA_REPLAYER_PLAN_REPLAY_PLAN_H_

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "api/libc_table.h"
#include "common/ids.h"
#include "common/result.h"
#include "format/reader/rank_reader.h"
#include "format/wire/messages.h"
#include "replayer/plan/clock_stream.h"
#include "replayer/plan/late_start.h"
#include "replayer/plan/lock_stream.h"
#include "replayer/plan/met_by_then.h"
#include "replayer/plan/plan_events.h"
#include "replayer/plan/plan_pages.h"

namespace deja::replayer {

inline constexpr uint32_t kNone = 0xffffffffu;

// One recorded call of the NCCL API.
struct RecordedCall {
  uint32_t api = 0;
  uint32_t comm = 0;  // number + 1; 0: none
  uint32_t thread = 0;
  uint32_t stack = 0;
  uint64_t comm_seq = 0;
  uint64_t enter_seq = 0;  // on its thread
  uint64_t time_ns = 0;
  uint64_t left_ns = 0;  // when it returned
  uint32_t ordinal = 0;  // strict events of its thread that came before
  uint32_t index = 0;    // its own, in calls()
  int64_t result = 0;
  PoolRange args;      // words, in the pages
  PoolRange outs;      // words, in the pages
  PoolRange inputs;    // tensors, in the pages
  PoolRange outputs;   // tensors, in the pages
  PoolRange blob;      // bytes, of the enter
  PoolRange out_blob;  // bytes, of the leave
  PoolRange created;   // communicators
  // A call on the same communicator, by another thread, during which this one came back: an abort
  // that ended its wait. kNone: none.
  uint32_t waits_for = kNone;
  bool left : 1 = false;          // the call returned
  bool hashed_input : 1 = false;  // what it read was known when it was entered
  bool has_input : 1 = false;     // what it read came like its results
  bool has_results : 1 = false;   // its outputs are known
  bool aborted : 1 = false;       // there are none: it was cut short while it was under way
  bool reads_at_end : 1 = false;  // its input is compared at the end of its group
  bool tells_end : 1 = false;     // it has no outputs; empty results say that it is done
};

// What a call that was captured into a CUDA graph read and produced, a tensor for each launch.
struct RecordedLaunches {
  std::vector<format::Tensor> read;
  std::vector<format::Tensor> produced;
  // After the first.
  [[nodiscard]] size_t more() const { return (produced.empty() ? read : produced).size() - 1; }
};

struct RecordedInput {
  uint32_t api = 0;
  uint32_t thread = 0;
  uint64_t key = 0;
  int64_t result = 0;
  int32_t error = 0;
  PoolRange data;  // bytes
  Hash128 hash;    // instead of data
};

struct RecordedSnapshot {
  std::string name;
  format::Tensor tensor;
  uint32_t stack = 0;
  uint32_t thread = 0;
  uint64_t time_ns = 0;
};

struct RecordedComm {
  uint32_t number = 0;  // number + 1
  uint64_t hash = 0;
  uint32_t rank = 0;
  uint32_t nranks = 0;
  uint32_t parent = 0;
  int32_t device = -1;
  std::string name;
  uint64_t joined_as = 0;  // format::CommCreated
};

// An error that the library reported for a communicator once `after_ops` operations were entered.
struct RecordedAsyncError {
  uint32_t comm = 0;
  int64_t result = 0;
  uint64_t time_ns = 0;
  uint64_t after_ops = 0;
};

struct RecordedModule {
  std::string path;
  std::string build_id;  // raw bytes
  uint64_t base = 0;
  uint64_t end = 0;
};

// Something outside the process that it talked to, or tried to.
struct PlannedConnection {
  std::string name;
  format::ConnectionKind kind{};
  uint32_t type = 0;
  std::string local;
  std::string remote;
  int64_t result = 0;
  int32_t error = 0;
  uint32_t listener = kNone;  // accepted: position in connections()
  bool own = false;
  uint64_t file_size = 0;
  std::string peer;  // preload::WriteLineage
  uint32_t thread = 0;
  uint64_t seq = 0;  // of the event, on its thread
  uint64_t time_ns = 0;
  // The address family is that of processes of one machine. What a thread does with the connection
  // counts as its events (RecordedThread::CountedEvents).
  [[nodiscard]] bool IsUnix() const;
  [[nodiscard]] bool IsConnectOrAccept() const {
    return kind == format::ConnectionKind::kConnected || kind == format::ConnectionKind::kAccepted;
  }
};

struct PlannedTransfer {
  uint32_t connection = 0;  // position in connections()
  format::TransferKind kind{};
  uint64_t number = 0;  // among its connection's
  int64_t result = 0;
  int32_t error = 0;
  PoolRange data;  // bytes
  Hash128 hash;    // instead of data
  uint64_t sent_before = 0;
  uint64_t sent_hash = 0;
  PoolRange address;  // bytes
  uint64_t position = 0;
  uint32_t flags = 0;
  uint32_t thread = 0;
  uint64_t seq = 0;
  uint64_t time_ns = 0;
};

struct RecordedRange {
  uint64_t begin = 0;
  uint64_t size = 0;
  Hash128 hash;
  format::FileReadHow how = format::FileReadHow::kRead;
  bool kept = false;  // its bytes are a payload
  uint32_t segment = 0;
  bool dropped = false;  // they were, and the window has moved on
};

// A file outside the run, in one state in which the process met it.
struct RecordedFile {
  uint32_t number = 0;
  std::string path;
  uint32_t mode = 0;
  uint64_t size = 0;
  int64_t mtime_ns = 0;
  uint64_t device = 0;
  uint64_t inode = 0;
  int32_t error = 0;
  uint64_t opens = 0;
  bool written = false;
  uint64_t tries = 0;   // not 0: changed by another process
  uint64_t looks = 0;   // format::InputFile
  std::string entries;  // of a folder; of a symbolic link, what it says
  Hash128 entries_hash;
  uint64_t time_ns = 0;
  std::vector<RecordedRange> ranges;  // by where they begin
};

// The first recorded reading of a clock, and when on the monotonic clock that was.
struct FirstReading {
  int64_t value = 0;
  uint64_t time_ns = 0;
};

using InputKey = std::pair<uint32_t, uint64_t>;  // api, key

// Where SIGCHLD reached a thread of Python.
struct RecordedSignal {
  uint64_t events = 0;      // RecordedThread::CountedEvents before it
  uint64_t readings = 0;    // of clocks, since the last of these
  uint64_t file_calls = 0;  // since the thread's last meeting (preload/engine/child_signal.h)
  bool exact = true;        // it came there; else before what follows
  uint32_t sleeps = 0;      // ChildSignal::sleeps there; 0: or not known
};

// Where Python's collector ran on a thread.
struct RecordedCollection {
  uint64_t events = 0;  // RecordedThread::CountedEvents before it
  uint32_t generation = 0;
  uint64_t time_ns = 0;
  bool acts = false;  // the thread has counted events of what it finalized
};

// One that acts: `number` of the collections of `thread`, a position in ReplayPlan::threads().
struct ActingCollection {
  uint64_t time_ns = 0;
  uint32_t thread = 0;
  uint32_t number = 0;
};

struct RecordedThread {
  uint32_t index = 0;
  std::string name;
  std::vector<uint32_t> calls;                        // that are matched in order: see IsOrdered
  std::map<uint32_t, std::vector<uint32_t>> by_api;   // groups and queries: calls of each api
  std::map<uint32_t, std::vector<uint32_t>> entropy;  // inputs of each api
  std::map<InputKey, std::vector<uint32_t>> by_key;   // inputs of each api and key
  std::map<uint32_t, ClockStream> clocks;             // by format::ClockSource
  LockStream locks;
  std::vector<uint32_t> snapshots;
  std::map<uint32_t, uint32_t> made;  // processes: pid by number
  std::vector<uint32_t> ends;         // of processes that it waited for: pids, in order
  std::vector<RecordedSignal> child_signals;
  std::vector<RecordedCollection> collections;
  uint64_t meetings = 0;
  uint64_t transfers = 0;        // over Unix sockets, and their connects and accepts
  RecordedSignal last_reading;   // of a clock
  bool was_interrupted = false;  // by SIGCHLD, at a meeting
  uint64_t entropy_events = 0;
  uint64_t strict_events = 0;  // operations, ordered calls and snapshots
  [[nodiscard]] uint64_t CountedEvents() const { return strict_events + meetings + transfers; }
  bool ended = false;  // ThreadEnd was recorded, or the process's end came on this thread
};

// How the recording ends.
enum class EndKind : uint8_t {
  kTorn,   // nothing says how: SIGKILL, power, or still running
  kExit,   // exit, _exit, return from main
  kCrash,  // a fatal signal
};

struct RecordedEnd {
  EndKind kind = EndKind::kTorn;
  uint32_t thread = kNone;
  int32_t exit_code = 0;
  uint32_t exit_how = 0;
  uint32_t signal = 0;
  int32_t sender_pid = 0;
  int32_t signal_code = 0;
  uint64_t address = 0;
  uint64_t pc = 0;
  std::vector<format::StackFrame> frames;
  uint64_t time_ns = 0;
  // A signal that another process sent: a replay cannot make it happen again.
  [[nodiscard]] bool FromOutside(uint32_t own_pid) const {
    return kind == EndKind::kCrash && signal_code <= 0 && sender_pid != 0 &&
           static_cast<uint32_t>(sender_pid) != own_pid;
  }
  // The program reaches this end by itself when it is run again.
  [[nodiscard]] bool HappensByItself(uint32_t own_pid) const {
    return kind != EndKind::kTorn && !FromOutside(own_pid);
  }
};

// How the plan sorts api ids; supplied by the engine from the API tables, by tests as they like.
enum class CallKind : uint8_t { kOperation, kOrdered, kGroup, kQuery };
struct ApiKinds {
  CallKind (*call)(uint32_t api);
  bool (*gives_up)(uint32_t api);  // ends the waits of others: abort, revoke
  api::InputKind (*input)(uint32_t api);
};

class ReplayPlan {
 public:
  // `checkpoint`: from which the replay starts; null: from the start. `end`: of what comes well
  // after it nothing is known, the recording's own end included. `reader` outlives the plan.
  static Result<std::unique_ptr<ReplayPlan>> Build(
      const format::RankReader& reader, const ApiKinds& kinds,
      const format::RecordedCheckpoint* checkpoint = nullptr, const PlannedEnd& end = {});

  // Identity of the recorded process.
  uint32_t rank = 0;
  uint32_t pid = 0;
  uint32_t parent_pid = 0;
  uint64_t begin_ns = 0;  // CLOCK_MONOTONIC when the recording began
  Level level = Level::kFull;
  uint32_t nccl_version = 0;
  uint32_t kept_inputs = 0;  // TraceHeader.inputs
  bool redacted = false;
  bool names_interpreter_waits = false;  // TraceHeader
  bool names_python_locks = false;       // TraceHeader
  std::string working_directory;
  format::ProcessFate fate;  // what the recorded process's parent saw

  // Null: the replay starts at the start.
  [[nodiscard]] const LateStart* start() const { return start_.get(); }
  // An event of `thread`, a position in threads(), that a replay from the checkpoint still comes
  // to.
  [[nodiscard]] bool IsAhead(uint32_t thread, uint64_t seq, uint64_t time_ns) const {
    return start_ == nullptr || start_->checkpoint().IsBehind(threads_[thread].index, seq, time_ns);
  }
  // It comes between the first step and the checkpoint: the program probably never asks for it.
  [[nodiscard]] bool SkipsCall(const RecordedCall& call) const {
    return start_ != nullptr && call.time_ns > start_->first_step_ns() &&
           !IsAhead(call.thread, call.enter_seq, call.time_ns);
  }
  [[nodiscard]] const RecordedEnd& end() const { return end_; }
  [[nodiscard]] const std::deque<RecordedCall>& calls() const { return calls_; }
  [[nodiscard]] const std::vector<RecordedInput>& inputs() const { return inputs_; }
  [[nodiscard]] const std::vector<RecordedSnapshot>& snapshots() const { return snapshots_; }
  [[nodiscard]] const std::vector<RecordedThread>& threads() const { return threads_; }
  [[nodiscard]] const MetByThen& met_by_then() const { return met_by_then_; }
  // Calls whose outputs have payloads, in the order in which they were entered.
  [[nodiscard]] const std::vector<uint32_t>& served_order() const { return served_order_; }
  [[nodiscard]] const std::vector<PlannedConnection>& connections() const { return connections_; }
  [[nodiscard]] const std::vector<PlannedTransfer>& transfers() const { return transfers_; }
  [[nodiscard]] const std::vector<RecordedFile>& files() const { return files_; }
  // A recorded name is below this folder.
  [[nodiscard]] bool HasFilesBelow(std::string_view folder) const {
    const std::string prefix = std::string(folder) + "/";
    auto it = file_by_path_.lower_bound(prefix);
    return it != file_by_path_.end() && it->first.substr(0, prefix.size()) == prefix;
  }
  [[nodiscard]] bool reads_files() const { return !files_.empty(); }
  // Its states in the order of the opens that met them, as positions in files(); null: unknown.
  [[nodiscard]] const std::vector<uint32_t>* FindFile(std::string_view path) const {
    auto it = file_by_path_.find(path);
    return it == file_by_path_.end() ? nullptr : &it->second;
  }
  // The same of symbolic links, which are never in what FindFile finds.
  [[nodiscard]] const std::vector<uint32_t>* FindLink(std::string_view path) const {
    auto it = link_by_path_.find(path);
    return it == link_by_path_.end() ? nullptr : &it->second;
  }
  // The names that the process made, which were not there, and when first.
  [[nodiscard]] const std::unordered_map<std::string, uint64_t>& created_ns() const {
    return created_ns_;
  }
  // By format::ClockSource, whichever thread read it.
  [[nodiscard]] const std::map<uint32_t, FirstReading>& first_readings() const {
    return first_readings_;
  }
  // First recorded value of each input, whichever thread asked.
  [[nodiscard]] const std::map<InputKey, uint32_t>& identities() const { return identities_; }

  // What call number `call` read, or produced, at its launch number `launch`, from 0; a call that
  // was not captured is one launch. Nothing: the recording has no such launch.
  [[nodiscard]] std::optional<format::Tensor> ReadAt(uint32_t call, uint64_t launch) const;
  [[nodiscard]] std::optional<format::Tensor> ProducedAt(uint32_t call, uint64_t launch) const;

  // Calls that were launched more than once.
  [[nodiscard]] const std::unordered_map<uint32_t, RecordedLaunches>& launches() const {
    return launches_;
  }

  [[nodiscard]] bool HasCommunicators() const { return !comms_.empty(); }
  // The call that was operation `seq` of communicator `comm`, or kNone.
  [[nodiscard]] uint32_t FindOperation(uint32_t comm, uint64_t seq) const;
  // Number of the last operation of a communicator; 0: none.
  [[nodiscard]] uint64_t LastOperation(uint32_t comm) const;
  // Where Python's collector finalized what did something, in the order of time; none where there
  // was one thread, which makes as many objects as it did.
  [[nodiscard]] const std::vector<ActingCollection>& acting_collections() const {
    return acting_collections_;
  }
  // Position in threads(), or kNone.
  [[nodiscard]] uint32_t FindThread(std::string_view name) const;
  [[nodiscard]] const RecordedComm* FindComm(uint32_t number) const;
  // Anything but giving it up was done with the communicator.
  [[nodiscard]] bool WasUsed(uint32_t comm) const { return used_.count(comm) != 0; }
  // How process `pid` ended, as a status of waitpid; nothing if no process has waited for it.
  [[nodiscard]] std::optional<int> StatusOf(uint32_t pid) const {
    auto it = statuses_.find(pid);
    return it == statuses_.end() ? std::nullopt : std::optional(it->second);
  }
  // Some call waits for this one (RecordedCall::waits_for).
  [[nodiscard]] bool IsAwaited(uint32_t call) const { return awaited_.count(call) != 0; }
  // The error that communicator `comm` had when `ops` operations had been entered; 0: none.
  [[nodiscard]] int64_t AsyncErrorAfter(uint32_t comm, uint64_t ops) const;

  // As long as the range, whatever the trace has become since.
  [[nodiscard]] std::vector<uint64_t> Words(PoolRange r) const { return pages_.Words(r); }
  [[nodiscard]] std::vector<format::Tensor> Tensors(PoolRange r) const { return pages_.Tensors(r); }
  [[nodiscard]] std::string_view Bytes(PoolRange r) const { return {bytes_.data() + r.at, r.size}; }
  [[nodiscard]] std::span<const RecordedComm> Created(PoolRange r) const {
    return {comms_.data() + r.at, r.size};
  }
  // Frames of a recorded stack, innermost first; empty if it is not defined.
  [[nodiscard]] std::span<const format::StackFrame> Stack(uint32_t stack) const;
  // Null for an unknown module (number 0 included).
  [[nodiscard]] const RecordedModule* Module(uint32_t module) const;

 private:
  friend class PlanBuilder;
  explicit ReplayPlan(const format::RankReader& reader) : pages_(reader) {}
  // The call that was entered last as this operation, or kNone.
  [[nodiscard]] uint32_t LatestOperation(uint32_t comm, uint64_t seq) const;

  PlanPages pages_;
  std::deque<RecordedCall> calls_;
  std::vector<RecordedInput> inputs_;
  std::vector<RecordedSnapshot> snapshots_;
  std::vector<RecordedThread> threads_;
  std::vector<PlannedConnection> connections_;
  std::vector<PlannedTransfer> transfers_;
  std::vector<RecordedFile> files_;
  std::map<std::string, std::vector<uint32_t>, std::less<>> file_by_path_;
  std::map<std::string, std::vector<uint32_t>, std::less<>> link_by_path_;
  std::vector<RecordedComm> comms_;
  std::vector<RecordedAsyncError> async_errors_;
  std::string bytes_;
  std::vector<uint32_t> served_order_;
  MetByThen met_by_then_;
  std::vector<ActingCollection> acting_collections_;
  std::unordered_map<uint32_t, RecordedLaunches> launches_;  // by call, of those with several
  std::unordered_map<std::string, uint64_t> created_ns_;
  std::map<uint32_t, FirstReading> first_readings_;
  std::map<InputKey, uint32_t> identities_;
  // By communicator: its operations' calls, by their numbers there.
  std::unordered_map<uint32_t, std::vector<uint32_t>> operations_;
  std::unordered_map<std::string_view, uint32_t> thread_by_name_;
  std::unordered_map<uint32_t, std::vector<format::StackFrame>> stacks_;
  std::unordered_map<uint32_t, RecordedModule> modules_;
  std::unordered_map<uint32_t, int> statuses_;  // by pid
  std::set<uint32_t> used_;
  std::set<uint32_t> awaited_;
  RecordedEnd end_;
  std::unique_ptr<LateStart> start_;
};

}  // namespace deja::replayer

#endif  // DEJA_REPLAYER_PLAN_REPLAY_PLAN_H_
