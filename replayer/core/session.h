// Session: one replay, i.e. the state that all parts of the replay engine share.
//
// Made once by the engine, never destroyed. What it points to is constant or locks for itself;
// ThreadState belongs to its thread. The functions that serve calls are in collectives.cc,
// comm_lifecycle.cc, inputs.cc and snapshots.cc.
#ifndef DEJA_REPLAYER_CORE_SESSION_H_
#define DEJA_REPLAYER_CORE_SESSION_H_

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "format/reader/rank_reader.h"
#include "preload/engine/buffers.h"
#include "preload/engine/engine.h"
#include "preload/process/threads.h"
#include "replayer/clocks/thread_clocks.h"
#include "replayer/fold/fold.h"
#include "replayer/forks/forks.h"
#include "replayer/mpi/mpi_world.h"
#include "replayer/nccl/served_comm.h"
#include "replayer/plan/payload_source.h"
#include "replayer/plan/replay_plan.h"
#include "replayer/report/divergence.h"
#include "replayer/report/position.h"
#include "replayer/report/report.h"
#include "replayer/sockets/redacted_names.h"

namespace deja::replayer {

class LiveTrace;

// An operation that the program has entered, and what was recorded of it.
struct LiveOperation {
  uint32_t index = kNone;  // in the plan's calls
  preload::Call call;
  ServedComm* comm = nullptr;
  preload::BufferUse input;
  preload::BufferUse output;
  uint64_t stream = 0;
  bool captured = false;  // into a CUDA graph
};

// A communicator that a call inside a group makes when the group ends.
struct PendingComm {
  uint64_t out = 0;     // address of the program's ncclComm_t
  uint32_t parent = 0;  // number + 1; 0: made from a unique id
  int64_t rank = -1;    // -1: not known from the call
};

// What the replay knows about one thread of the program.
struct ThreadState {
  uint32_t recorded = kNone;           // position in plan.threads()
  uint32_t slot = kNone;               // in deja_replay_state.threads
  uint32_t depth = 0;                  // of groups
  std::vector<LiveOperation> pending;  // inside a group: their results are served when it ends
  std::vector<PendingComm> pending_comms;
  std::vector<ServedComm*> new_comms;  // whose ranks have to meet before anything is computed
  uint32_t next_call = 0;
  uint32_t next_snapshot = 0;
  uint64_t mpi_polls = 0;     // questions answered no, since the last call of MPI
  double mpi_clock = 0;       // the last time that MPI's clock was served
  double mpi_clock_live = 0;  // and when that was
  uint32_t next_end = 0;      // of processes
  std::map<uint32_t, uint32_t> next_by_api;
  std::map<uint32_t, uint32_t> next_entropy;
  std::map<InputKey, uint32_t> next_by_key;
  uint64_t entropy_served = 0;
  bool started_late = false;                  // its positions are behind the checkpoint
  std::unique_ptr<ThreadClocks> clocks;       // from its first look at one
  std::unique_ptr<LockStream::Cursor> locks;  // from its first lock
  bool is_past_locks = false;                 // it goes on behind them
  bool runs_in_turn = false;  // a routine that runs once, by the next of these readings
  // Times that a process has used: what was told last, and what was true then.
  std::map<InputKey, std::pair<std::string, std::string>> last_usage;
};

struct SessionOptions {
  std::string folder;
  std::string scratch;
  bool stop_on_divergence = true;
  ClockMode clocks = ClockMode::kServed;
  std::string working_directory;  // of the process when the replay began
  std::string child;              // name of the process below the rank; empty: the rank itself
  std::string child_name;         // the same as listings have it: of a forked rank's, below that
  bool is_before_fork =
      false;  // of a process that has forked the rank, or who did: no end of its own
  bool is_companion =
      false;                // it is, or belongs to, another rank (companions.h): it reports nothing
  int rank_pid = 0;         // of a child: recorded pid of its rank
  uint64_t checkpoint = 0;  // number of the one to start from; 0: from the start
  bool is_late = false;     // the rank starts from one, also if this is one of its children
  uint64_t until_step = 0;  // + 1: the replay ends where it begins; 0: none
  uint32_t until_comm = 0;  // + 1: it ends before the operation until_seq on it; 0: none
  uint64_t until_seq = 0;
  bool hold = false;  // there it does not end, but waits for a file (kGoOnFile), and goes on
  std::string fold;  // folder where the replayed ranks meet to compute (fold.h); empty: they do not
  // A trace of what the program does is to be made there, of a job with this id; empty: none is.
  std::string out;
  std::string job_id;
  std::string recording;  // as the user named it
};

class Session {
 public:
  // Null after an error has been reported.
  static Session* Open(const SessionOptions& options);

  [[nodiscard]] const ReplayPlan& plan() const { return *plan_; }
  PayloadSource& payloads() { return *payloads_; }
  ServedMpi& mpi() { return *mpi_; }
  RedactedNames& redacted_names() { return redacted_names_; }
  // Null: nothing is computed.
  [[nodiscard]] Fold* fold() const { return fold_.get(); }
  // Null: the replay leaves no trace of its own.
  [[nodiscard]] LiveTrace* live_trace() const { return live_trace_; }
  [[nodiscard]] const Report& report() const { return report_; }
  [[nodiscard]] const SessionOptions& options() const { return options_; }
  // Recorded pid of the rank that this process is, or belongs to.
  [[nodiscard]] int rank_pid() const {
    return options_.rank_pid != 0 ? options_.rank_pid : static_cast<int>(plan_->pid);
  }

  // The calling thread's state.
  ThreadState& Thread();

  ThreadClocks& Clocks(ThreadState& thread);
  // Where in its recording the thread is, as ClockStream counts.
  [[nodiscard]] uint64_t Segment(const ThreadState& thread) const {
    if (thread.recorded == kNone) return 0;
    return MadeBy(thread.recorded) + thread.entropy_served + (thread.started_late ? 1 : 0);
  }

  // The program is at its first step with the state of the checkpoint: all positions jump to behind
  // it, those of other threads when they ask for something next.
  void StartLate();
  [[nodiscard]] bool started_late() const { return started_late_.load(); }
  // Made in this replay, and not given up.
  [[nodiscard]] bool HasComm(uint32_t number) const;

  // Something happened that a hanging program does not do.
  void CountActivity() { activity_.fetch_add(1, std::memory_order_relaxed); }
  [[nodiscard]] uint64_t activity() const { return activity_.load(std::memory_order_relaxed); }

  // One of the events that recorded thread `recorded` has to make was made.
  void Consume(uint32_t recorded);
  [[nodiscard]] uint64_t remaining() const { return remaining_.load(); }
  [[nodiscard]] uint64_t RemainingOf(uint32_t recorded) const {
    return recorded == kNone ? 0 : remaining_of_[recorded].load();
  }

  // Random bytes that were recorded have been served. What is left of them says that a recording
  // without an end has not come to it yet.
  void ConsumeEntropy() { entropy_left_.fetch_sub(1); }
  [[nodiscard]] bool AllConsumed() const {
    return remaining() == 0 && entropy_left_.load() <= 0 && launches_left_.load() <= 0;
  }

  // A graph was launched for the `launch`-th time; `call` is one of those that it contains.
  void CountLaunch(uint32_t call, uint64_t launch, bool produced);

  // Recorded chunks of connections that the program has not received yet.
  void SetTransfersLeft(uint64_t left);
  [[nodiscard]] uint64_t transfers_left() const { return transfers_left_.load(); }

  // How many of them it has made.
  [[nodiscard]] uint64_t MadeBy(uint32_t recorded) const {
    return plan_->threads()[recorded].strict_events - RemainingOf(recorded);
  }

  // A communicator for the program, made by `call`; returns its handle.
  uint64_t NewComm(const RecordedComm& recorded, const RecordedCall& call);
  // Waits for the other ranks of the communicators that the thread has made, if anything will be
  // computed on them.
  void MeetNewComms(ThreadState& thread, const RecordedCall& call);
  // A call that others may wait for was made / waits until it is.
  void MarkMade(uint32_t call);
  void WaitUntilMade(uint32_t call);
  // Operations that the program has entered on a communicator, by number + 1.
  [[nodiscard]] uint64_t OperationsOf(uint32_t comm) const;
  // The most on any communicator.
  [[nodiscard]] uint64_t MostOperations() const;

  // What to do when the program makes a call that is not in the recording: nothing ends the
  // thread's recording, so it waits for the end of the replay (no return); or this is a divergence.
  enum class Missing { kEndOfRecording, kDivergence };
  [[nodiscard]] Missing Classify(const ThreadState& thread) const;

  // Reports `divergence`. Returns if the replay goes on (--on-divergence=warn).
  void Diverge(ThreadState& thread, Divergence divergence, uint32_t recorded_stack);
  // Reports that the program sends something else than it did. The replay goes on: nobody gets it.
  void ReportSent(std::string what);
  // Fills in what every divergence says about where it is.
  Divergence NewDivergence(DivergenceKind kind, const ThreadState& thread) const;

  // Position, for gdb and for reports.
  void Enter(ThreadState& thread, const char* api, uint32_t comm, uint64_t comm_seq,
             uint32_t stack);
  // The thread has come to a place (position.h). True: gdb wants to stop there. `stops`: it will,
  // for another reason. Returns once more in an image of the process that goes on (forks.h).
  bool Arrive(ThreadState& thread, uint64_t place, bool stops);
  Forks& images() { return *images_; }
  // Ends the replay where the user wanted it to end, or waits there.
  void EndAsAsked(std::string_view where);
  // Stops in gdb. `tensors` are shown; recorded bytes are fetched here.
  struct ShownTensor {
    const char* name;
    uint32_t role;
    const format::Tensor* recorded;
    const void* live;
    uint32_t comparison;
  };
  void Stop(ThreadState& thread, DejaStopReason reason, std::string_view message,
            std::span<const ShownTensor> tensors, uint32_t recorded_stack);

  // Remembers what the program showed under a name, for `deja tensor NAME`.
  void RememberSnapshot(const RecordedSnapshot& recorded, const void* live, uint32_t comparison);

  // Frames of a recorded stack / of the calling thread, by path.
  [[nodiscard]] std::vector<StackLine> RecordedStack(uint32_t stack) const;
  [[nodiscard]] std::vector<StackLine> Lines(std::span<const format::StackFrame> frames) const;

  // Ends the process at once, without running anything of the program's.
  [[noreturn]] static void EndProcess(int code);

  void CountCompared(bool equal);
  void CountComputed(uint64_t operations) { computed_.fetch_add(operations); }
  // In its scope the calling thread computes with other ranks what came to its end in the
  // recording, there or here: the process is not to be ended meanwhile.
  class Needed {
   public:
    Needed(Session& session, bool needed) : count_(needed ? &session.needed_ : nullptr) {
      if (count_ != nullptr) count_->fetch_add(1);
    }
    ~Needed() {
      if (count_ != nullptr) count_->fetch_sub(1);
    }
    Needed(const Needed&) = delete;
    Needed& operator=(const Needed&) = delete;

   private:
    std::atomic<uint32_t>* count_;
  };
  [[nodiscard]] bool IsNeeded() const { return needed_.load() != 0; }
  // In its scope recorded thread `recorded` is held back until others have done something before
  // it, unless another one waits for its turn at a lock.
  class Held {
   public:
    Held(Session& session, uint32_t recorded) : session_(session), recorded_(recorded) {
      session_.wanted_[recorded_].store(false);
      session_.held_.fetch_add(1);
    }
    ~Held() { session_.held_.fetch_sub(1); }
    Held(const Held&) = delete;
    Held& operator=(const Held&) = delete;
    [[nodiscard]] bool IsWanted() const { return session_.wanted_[recorded_].load(); }

   private:
    Session& session_;
    uint32_t recorded_;
  };
  [[nodiscard]] bool IsAnyHeld() const { return held_.load(std::memory_order_relaxed) != 0; }
  // Somebody waits for the turn of recorded thread `recorded`.
  void Want(uint32_t recorded) { wanted_[recorded].store(true); }
  [[nodiscard]] CountersPart CountersNow() const;

 private:
  struct SnapshotView {
    const RecordedSnapshot* recorded;
    const void* live;
    uint32_t comparison;
  };

  Session() = default;
  Status ReadPlan();
  void Hold(std::string_view where);
  void Prepare();
  void CatchUp(ThreadState& thread) const;
  void StartClocks();
  void FillFrames(deja_replay_frame* out, uint32_t& count,
                  std::span<const format::StackFrame> frames) const;

  SessionOptions options_;
  Report report_;
  std::unique_ptr<format::RankReader> reader_;
  std::unique_ptr<ReplayPlan> plan_;
  std::unique_ptr<PayloadSource> payloads_;
  std::unique_ptr<ServedMpi> mpi_;
  RedactedNames redacted_names_;
  std::unique_ptr<Fold> fold_;
  std::unique_ptr<Forks> images_;
  LiveTrace* live_trace_ = nullptr;
  std::unique_ptr<std::atomic<uint64_t>[]> remaining_of_;
  std::unique_ptr<std::atomic<bool>[]> wanted_;  // by recorded thread
  std::atomic<uint32_t> held_{0};
  std::atomic<uint64_t> remaining_{0};
  std::atomic<int64_t> entropy_left_{0};
  std::atomic<int64_t> launches_left_{0};
  std::atomic<uint64_t> transfers_left_{0};
  std::atomic<uint64_t> activity_{0};
  ProcessClocks clocks_;
  std::atomic<uint32_t> divergences_{0};
  std::atomic<uint64_t> computed_{0};
  std::atomic<uint32_t> needed_{0};
  std::mutex stop_mutex_;
  mutable std::mutex comm_mutex_;
  std::vector<ServedComm*> comms_;
  std::atomic<bool> started_late_{false};
  std::mutex made_mutex_;
  std::condition_variable made_changed_;
  std::set<uint32_t> made_;
  std::mutex snapshot_mutex_;
  std::map<std::string, SnapshotView> snapshot_views_;
};

// How the api tables sort calls and inputs.
CallKind KindOfCall(uint32_t api);
// "AllReduce" for ncclAllReduce, "allreduce" for c10d_allreduce.
const char* ShortName(const char* name);
std::string ApiText(uint32_t api);

// The servers. Each sets call.result and the program's out-parameters.
// Returns the recorded operation's position in the plan's calls, or kNone.
uint32_t ServeOperation(Session& session, ThreadState& thread, preload::Call& call);
void ServeGroup(Session& session, ThreadState& thread, preload::Call& call);
// Computes operations of one group among the replayed ranks, compares the results with the
// recording and puts them into the program's buffers (fold.h). All are on communicators that are
// computed.
void Compute(Session& session, ThreadState& thread, std::span<const LiveOperation* const> group);
// Returns the recorded call; null if there is none.
const RecordedCall* ServeOrdered(Session& session, ThreadState& thread, preload::Call& call);
void ServeQuery(Session& session, ThreadState& thread, preload::Call& call);
// Only what is one value for each question; false if the recording does not have it.
bool ServeIdentity(const ReplayPlan& plan, preload::InputCall& call);
void ServeInput(Session& session, ThreadState& thread, preload::InputCall& call);
int64_t ServeClock(Session& session, ThreadState& thread, format::ClockSource source,
                   int64_t live_ns);
// times and getrusage.
void ServeUsage(Session& session, ThreadState& thread, preload::InputCall& call);
int64_t DeadlineOffset(Session& session, ThreadState& thread, int clock, int64_t deadline_ns);
void ServeSnapshot(Session& session, ThreadState& thread, const preload::SnapshotCall& call);

// Adds to `text` what differs between the recorded arguments and the live ones; empty: nothing.
std::string CompareArguments(const ReplayPlan& plan, const RecordedCall& recorded,
                             const preload::Call& live);
// Writes the recorded values of scalar out-parameters to where the live call wants them.
// The recorded call of this kind that is this thread's next one; the last one again when they are
// used up; null if there is none. For calls that are matched by kind alone.
const RecordedCall* NextOfKind(Session& session, ThreadState& thread, uint32_t api);
void WriteOuts(Session& session, const RecordedCall& recorded, preload::Call& call);

}  // namespace deja::replayer

#endif  // DEJA_REPLAYER_CORE_SESSION_H_
