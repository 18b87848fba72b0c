#include "replayer/replay_plan.h"

#include <sys/stat.h>

#include <algorithm>
#include <cstring>

#include "format/clock_run.h"
#include "format/file_ranges.h"
#include "format/rank_log.h"
#include "preload/api/find_api.h"
#include "preload/buffers.h"

namespace deja::replayer {

using format::EventKind;

namespace {
// Pools are addressed by 32 bits; a rank whose metadata is larger than this cannot be indexed.
constexpr size_t kMaxPool = 0xfffffff0u;
constexpr int64_t kInProgress = 7;  // ncclInProgress
constexpr uint32_t kExecuted = 2;   // ProcessExit.how

// True for a parameter behind which the call only reads.
bool OnlyReads(uint32_t api, uint32_t param) {
  const preload::ApiInfo* info = preload::FindApi(api);
  if (info == nullptr || param >= info->param_count) return false;
  const preload::Role role = info->params[param].role;
  return preload::IsInputRole(role) && !preload::IsOutputRole(role);
}
}  // namespace

// Goes through the events once. One per Build().
class PlanBuilder {
 public:
  PlanBuilder(ReplayPlan& plan, const ApiKinds& kinds) : plan_(plan), kinds_(kinds) {}

  void Add(const format::Event& event) {
    LateStart* start = plan_.start_.get();
    behind_start_ = start != nullptr && event.thread != format::kLogThread &&
                    start->checkpoint().IsBehind(event.thread, event.seq, event.time_ns);
    if (behind_start_) {
      const uint32_t thread = ThreadAt(event.thread);  // there may be a new one from here on
      start->Pass(thread, plan_.threads_);
    }
    switch (static_cast<EventKind>(KindNumber(event))) {
      case EventKind::kCallEnter:
        Enter(event, *event.As<format::CallEnter>());
        break;
      case EventKind::kCallLeave:
        Leave(event, *event.As<format::CallLeave>());
        break;
      case EventKind::kCallResults:
        Results(event, *event.As<format::CallResults>());
        break;
      case EventKind::kInput:
        AddInput(event, *event.As<format::Input>());
        break;
      case EventKind::kClockRun:
        format::ForEachReading(
            *event.As<format::ClockRun>(),
            [&](format::ClockSource source, int64_t value) { AddReading(event, source, value); });
        break;
      case EventKind::kSnapshot:
        AddSnapshot(event, *event.As<format::Snapshot>());
        break;
      case EventKind::kThreadStart:
        StartThread(*event.As<format::ThreadStart>());
        break;
      case EventKind::kThreadEnd:
        Thread(event.thread).ended = true;
        break;
      case EventKind::kCommCreated:
        AddComm(event, *event.As<format::CommCreated>());
        break;
      case EventKind::kModuleLoaded:
        AddModule(*event.As<format::ModuleLoaded>());
        break;
      case EventKind::kStackDefined:
        AddStack(*event.As<format::StackDefined>());
        break;
      case EventKind::kCrash:
        AddCrash(event, *event.As<format::Crash>());
        break;
      case EventKind::kProcessExit:
        AddExit(event, *event.As<format::ProcessExit>());
        break;
      case EventKind::kAsyncError: {
        const auto& error = *event.As<format::AsyncError>();
        plan_.async_errors_.push_back({error.comm, error.result, event.time_ns, 0});
        break;
      }
      case EventKind::kInputFile:
        AddFile(event, *event.As<format::InputFile>());
        break;
      case EventKind::kFileRead:
        AddRanges(*event.As<format::FileRead>());
        break;
      case EventKind::kConnectionOpened:
        AddConnection(event, *event.As<format::ConnectionOpened>());
        break;
      case EventKind::kTransfer:
        AddTransfer(event, *event.As<format::Transfer>());
        break;
      case EventKind::kChild:
        AddChild(event, *event.As<format::Child>());
        break;
      case EventKind::kStep:
        if (plan_.start_ != nullptr) plan_.start_->AddStep(event);
        break;
      default:
        break;  // notes are positions, not something to serve
    }
  }

  Status Finish() {
    if (!error_.empty()) return Fail(ErrorCode::kCorrupt, error_);
    for (auto& [comm, ops] : plan_.operations_) std::sort(ops.begin(), ops.end());
    ResolvePendingResults();
    ResolveConnections();
    ResolveFiles();
    FindWaits();
    auto entered_before = [this](uint32_t a, uint32_t b) {
      return plan_.calls_[a].time_ns < plan_.calls_[b].time_ns;
    };
    for (uint32_t i = 0; i < plan_.calls_.size(); ++i)
      if (plan_.calls_[i].outputs.size != 0) plan_.served_order_.push_back(i);
    std::stable_sort(plan_.served_order_.begin(), plan_.served_order_.end(), entered_before);
    for (RecordedAsyncError& error : plan_.async_errors_) CountOperationsBefore(error);
    if (plan_.end_.thread != kNone) plan_.threads_[plan_.end_.thread].ended = true;
    if (plan_.start_ != nullptr) plan_.start_->Finish(plan_.threads_);
    for (uint32_t i = 0; i < plan_.threads_.size(); ++i)
      plan_.thread_by_name_.emplace(plan_.threads_[i].name, i);
    return {};
  }

 private:
  static uint32_t KindNumber(const format::Event& event) {
    return std::visit(
        [](const auto& body) {
          return static_cast<uint32_t>(format::kKindOf<std::decay_t<decltype(body)>>);
        },
        event.body);
  }

  uint32_t ThreadAt(uint32_t index) {
    auto [it, is_new] = thread_at_.try_emplace(index, plan_.threads_.size());
    if (is_new) {
      plan_.threads_.emplace_back();
      plan_.threads_.back().index = index;
      plan_.threads_.back().name = "?" + std::to_string(index);
    }
    return it->second;
  }
  RecordedThread& Thread(uint32_t index) { return plan_.threads_[ThreadAt(index)]; }

  template <typename Pool, typename Items>
  PoolRange Keep(Pool& pool, const Items& items) {
    if (pool.size() + items.size() > kMaxPool) {
      error_ = "the recording of this rank is larger than a replay can index";
      return {};
    }
    PoolRange range{static_cast<uint32_t>(pool.size()), static_cast<uint32_t>(items.size())};
    pool.insert(pool.end(), items.begin(), items.end());
    return range;
  }

  void StartThread(const format::ThreadStart& start) {
    Thread(start.thread).name = std::string(start.name);
  }

  void Enter(const format::Event& event, const format::CallEnter& enter) {
    if (plan_.calls_.size() >= kMaxPool) return;
    const auto index = static_cast<uint32_t>(plan_.calls_.size());
    RecordedCall call;
    call.api = enter.api;
    call.comm = enter.comm;
    call.comm_seq = enter.comm_seq;
    call.thread = ThreadAt(event.thread);
    call.stack = enter.stack;
    call.enter_seq = event.seq;
    call.time_ns = event.time_ns;
    call.args = Keep(plan_.words_, enter.args);
    call.inputs = Keep(plan_.tensors_, enter.inputs);
    call.blob = Keep(plan_.bytes_, enter.blob);
    RecordedThread& thread = plan_.threads_[call.thread];
    call.ordinal = thread.strict_events;
    plan_.calls_.push_back(call);
    open_[call.thread].emplace_back(event.seq, index);
    const CallKind kind = kinds_.call(enter.api);
    if (kind == CallKind::kOperation && enter.comm != 0 && enter.comm_seq != 0) {
      plan_.operations_[enter.comm].emplace_back(enter.comm_seq, index);
      operation_at_[{enter.comm, enter.comm_seq}] = index;
      if (plan_.start_ != nullptr && !behind_start_)
        plan_.start_->AddOperation(enter.comm, enter.comm_seq);
      ++thread.strict_events;
    } else if (kind != CallKind::kOrdered) {
      thread.by_api[enter.api].push_back(index);
    } else {
      thread.calls.push_back(index);
      ++thread.strict_events;
    }
  }

  void Leave(const format::Event& event, const format::CallLeave& leave) {
    auto& open = open_[ThreadAt(event.thread)];
    for (size_t i = open.size(); i-- > 0;) {
      if (open[i].first != leave.enter_seq) continue;
      RecordedCall& call = plan_.calls_[open[i].second];
      call.left = true;
      call.left_ns = event.time_ns;
      call.result = leave.result;
      call.outs = Keep(plan_.words_, leave.outs);
      call.out_blob = Keep(plan_.bytes_, leave.blob);
      open.erase(open.begin() + static_cast<std::ptrdiff_t>(i));
      return;
    }
  }

  // Results without a communicator belong to the call of this thread with that number.
  void AddResultsOfOpenCall(const format::Event& event, const format::CallResults& results) {
    for (const auto& [seq, index] : open_[ThreadAt(event.thread)]) {
      if (seq != results.comm_seq) continue;
      RecordedCall& call = plan_.calls_[index];
      if (call.outputs.size != 0 && call.outputs.at + call.outputs.size != plan_.tensors_.size())
        call.outputs =
            Keep(plan_.tensors_, std::vector<format::Tensor>(
                                     plan_.tensors_.begin() + call.outputs.at,
                                     plan_.tensors_.begin() + call.outputs.at + call.outputs.size));
      const PoolRange more = Keep(plan_.tensors_, results.outputs);
      if (call.outputs.size == 0) call.outputs.at = more.at;
      call.outputs.size += more.size;
      call.has_results = true;
    }
  }

  void Results(const format::Event& event, const format::CallResults& results) {
    if (results.comm == 0) return AddResultsOfOpenCall(event, results);
    const PoolRange outputs = Keep(plan_.tensors_, results.outputs);
    auto it = operation_at_.find({results.comm, results.comm_seq});
    if (it == operation_at_.end()) {
      // Another thread's batch, which comes later in the file, has the enter.
      pending_results_.push_back({results.comm, results.comm_seq, outputs});
      return;
    }
    AddResults(plan_.calls_[it->second], outputs);
  }

  // What a call had read, where it was not known when the call was entered, comes like its results.
  void AddResults(RecordedCall& call, PoolRange results) {
    if (results.size == 1 && call.inputs.size == 1) {
      const format::Tensor& tensor = plan_.tensors_[results.at];
      format::Tensor& input = plan_.tensors_[call.inputs.at];
      if (input.hash.IsZero() && OnlyReads(call.api, tensor.param)) {
        input = tensor;
        return;
      }
    }
    call.outputs = results;
    call.has_results = true;
  }

  void ResolvePendingResults() {
    for (const PendingResults& pending : pending_results_) {
      auto it = operation_at_.find({pending.comm, pending.comm_seq});
      if (it == operation_at_.end()) continue;
      AddResults(plan_.calls_[it->second], pending.outputs);
    }
  }

  // Which operations came back because another thread gave the communicator up.
  void FindWaits() {
    std::map<uint32_t, std::vector<uint32_t>> given_up;  // calls by communicator
    for (uint32_t i = 0; i < plan_.calls_.size(); ++i) {
      const RecordedCall& call = plan_.calls_[i];
      if (call.comm == 0) continue;
      if (kinds_.gives_up(call.api))
        given_up[call.comm].push_back(i);
      else if (kinds_.call(call.api) != CallKind::kQuery)
        plan_.used_.insert(call.comm);
    }
    if (given_up.empty()) return;
    for (RecordedCall& call : plan_.calls_) {
      if (call.comm_seq == 0 || !call.left || call.result == 0) continue;
      auto it = given_up.find(call.comm);
      if (it == given_up.end()) continue;
      for (uint32_t other : it->second) {
        const RecordedCall& end = plan_.calls_[other];
        if (end.thread == call.thread || end.time_ns < call.time_ns || end.time_ns > call.left_ns)
          continue;
        call.waits_for = other;
        plan_.awaited_.insert(other);
        break;
      }
    }
  }

  void AddReading(const format::Event& event, format::ClockSource source, int64_t value) {
    RecordedThread& thread = Thread(event.thread);
    const auto number = static_cast<uint32_t>(source);
    // A checkpoint begins a segment, so that what was read before it in the same one is left out.
    const uint64_t segment = thread.strict_events + thread.entropy_events + (behind_start_ ? 1 : 0);
    thread.clocks[number].Add(segment, value);
    plan_.first_readings_.try_emplace(number, FirstReading{value, event.time_ns});
  }

  // Readings as format 1.0 has them, an event each. False if it is no such input.
  bool AddOldReading(const format::Event& event, const format::Input& input) {
    constexpr int64_t kSecond = 1000000000;
    int64_t fields[2] = {};  // timespec, timeval, time_t
    input.data.copy(reinterpret_cast<char*>(fields), sizeof fields);
    const auto seconds = static_cast<int64_t>(static_cast<uint64_t>(fields[0]) * kSecond);
    auto source = format::ClockSource::kNone;
    int64_t value = 0;
    switch (static_cast<preload::LibcApi>(input.api)) {
      case preload::LibcApi::kclock_gettime:
        source = static_cast<format::ClockSource>(std::min<uint64_t>(input.key, 30) + 1);
        __builtin_add_overflow(seconds, fields[1], &value);
        break;
      case preload::LibcApi::ktimespec_get:
        source = format::ClockSource::kTimespecGet;
        __builtin_add_overflow(seconds, fields[1], &value);
        break;
      case preload::LibcApi::kgettimeofday:
        source = format::ClockSource::kGettimeofday;
        __builtin_add_overflow(seconds, fields[1] % 1000000 * 1000, &value);
        break;
      case preload::LibcApi::ktime:
        source = format::ClockSource::kTime;
        value = seconds;
        break;
      default:
        return false;
    }
    AddReading(event, source, value);
    return true;
  }

  void AddInput(const format::Event& event, const format::Input& input) {
    if (AddOldReading(event, input)) return;
    const auto index = static_cast<uint32_t>(plan_.inputs_.size());
    RecordedInput recorded;
    recorded.api = input.api;
    recorded.thread = ThreadAt(event.thread);
    recorded.key = input.key;
    recorded.result = input.result;
    recorded.error = static_cast<int32_t>(input.error);
    recorded.data = Keep(plan_.bytes_, input.data);
    recorded.hash = input.hash;
    plan_.inputs_.push_back(recorded);
    RecordedThread& thread = plan_.threads_[recorded.thread];
    const InputKey key{input.api, input.key};
    if (kinds_.input(input.api) == preload::InputKind::kEntropy) {
      thread.entropy[input.api].push_back(index);
      ++thread.entropy_events;
    } else {
      thread.by_key[key].push_back(index);
    }
    plan_.identities_.try_emplace(key, index);
  }

  void AddConnection(const format::Event& event, const format::ConnectionOpened& opened) {
    connection_at_.try_emplace(opened.connection, static_cast<uint32_t>(plan_.connections_.size()));
    PlannedConnection connection;
    connection.name = std::string(opened.name);
    connection.kind = static_cast<format::ConnectionKind>(opened.kind);
    connection.type = opened.type;
    connection.local = std::string(opened.local);
    connection.remote = std::string(opened.remote);
    connection.result = opened.result;
    connection.error = static_cast<int32_t>(opened.error);
    connection.listener = opened.listener;  // its number, until all are known
    connection.own = opened.own;
    connection.file_size = opened.file_size;
    connection.peer = std::string(opened.peer);
    connection.thread = ThreadAt(event.thread);
    connection.seq = event.seq;
    connection.time_ns = event.time_ns;
    plan_.connections_.push_back(std::move(connection));
  }

  void AddTransfer(const format::Event& event, const format::Transfer& recorded) {
    PlannedTransfer transfer;
    transfer.connection = recorded.connection;  // its number, until all are known
    transfer.kind = static_cast<format::TransferKind>(recorded.direction);
    transfer.number = recorded.number;
    transfer.result = recorded.result;
    transfer.error = static_cast<int32_t>(recorded.error);
    transfer.data = Keep(plan_.bytes_, recorded.data);
    transfer.hash = recorded.hash;
    transfer.sent_before = recorded.sent_before;
    transfer.sent_hash = recorded.sent_hash;
    transfer.address = Keep(plan_.bytes_, recorded.address);
    transfer.position = recorded.position;
    transfer.flags = recorded.flags;
    transfer.thread = ThreadAt(event.thread);
    transfer.seq = event.seq;
    transfer.time_ns = event.time_ns;
    plan_.transfers_.push_back(transfer);
  }

  // Numbers become positions. One that was never defined belongs to events that are lost.
  void ResolveConnections() {
    auto position = [this](uint32_t number) {
      auto it = connection_at_.find(number);
      return it == connection_at_.end() ? kNone : it->second;
    };
    for (PlannedConnection& connection : plan_.connections_)
      connection.listener = connection.listener == 0 ? kNone : position(connection.listener);
    for (PlannedTransfer& transfer : plan_.transfers_)
      transfer.connection = position(transfer.connection);
    std::erase_if(plan_.transfers_,
                  [](const PlannedTransfer& transfer) { return transfer.connection == kNone; });
  }

  void AddFile(const format::Event& event, const format::InputFile& recorded) {
    RecordedFile file;
    file.number = recorded.file;
    file.path = std::string(recorded.path);
    file.mode = recorded.mode;
    file.size = recorded.size;
    file.mtime_ns = recorded.mtime_ns;
    file.device = recorded.device;
    file.inode = recorded.inode;
    file.error = static_cast<int32_t>(recorded.error);
    file.opens = recorded.opens;
    file.written = recorded.written;
    file.entries = std::string(recorded.entries);
    file.entries_hash = recorded.entries_hash;
    file.time_ns = event.time_ns;
    plan_.files_.push_back(std::move(file));
  }

  void AddRanges(const format::FileRead& event) {
    for (const format::FileRange& range : format::RangesOf(event))
      file_ranges_[event.file].push_back(
          {range.begin, range.size, range.hash, static_cast<format::FileReadHow>(event.how),
           event.payload == static_cast<uint32_t>(format::PayloadState::kKept)});
  }

  // A range may stand before its file: another thread wrote it.
  void ResolveFiles() {
    for (uint32_t i = 0; i < plan_.files_.size(); ++i) {
      RecordedFile& file = plan_.files_[i];
      auto& by_path = S_ISLNK(file.mode) ? plan_.link_by_path_ : plan_.file_by_path_;
      by_path[file.path].push_back(i);
      const auto ranges = file_ranges_.find(file.number);
      if (ranges == file_ranges_.end()) continue;
      file.ranges = std::move(ranges->second);
      file_ranges_.erase(ranges);
      std::stable_sort(
          file.ranges.begin(), file.ranges.end(),
          [](const RecordedRange& a, const RecordedRange& b) { return a.begin < b.begin; });
    }
    for (auto* by_path : {&plan_.file_by_path_, &plan_.link_by_path_})
      for (auto& [path, states] : *by_path)
        std::stable_sort(states.begin(), states.end(), [this](uint32_t a, uint32_t b) {
          return plan_.files_[a].opens < plan_.files_[b].opens;
        });
  }

  void AddSnapshot(const format::Event& event, const format::Snapshot& snapshot) {
    if (snapshot.checkpoint != 0) return;
    const uint32_t thread = ThreadAt(event.thread);
    plan_.threads_[thread].snapshots.push_back(static_cast<uint32_t>(plan_.snapshots_.size()));
    ++plan_.threads_[thread].strict_events;
    plan_.snapshots_.push_back(
        {std::string(snapshot.name), snapshot.tensor, snapshot.stack, thread});
  }

  void AddComm(const format::Event& event, const format::CommCreated& created) {
    const uint32_t thread = ThreadAt(event.thread);
    const auto at = static_cast<uint32_t>(plan_.comms_.size());
    plan_.comms_.push_back({created.comm, created.hash, created.rank, created.nranks,
                            created.parent, created.device, std::string(created.name)});
    // It belongs to the innermost call that this thread has not left.
    auto& open = open_[thread];
    // Made without blocking, it is announced when the thread learns of it: then it is the last
    // call's that could have made one.
    const uint32_t maker = open.empty() ? LastMaker(thread) : open.back().second;
    if (maker == kNone) return;
    RecordedCall& call = plan_.calls_[maker];
    if (call.created.size == 0) {
      call.created = {at, 1};
    } else if (call.created.at + call.created.size == at) {
      ++call.created.size;
    } else {  // another thread made one in between: keep this call's together
      std::vector<RecordedComm> mine(plan_.comms_.begin() + call.created.at,
                                     plan_.comms_.begin() + call.created.at + call.created.size);
      mine.push_back(plan_.comms_.back());
      call.created = Keep(plan_.comms_, mine);
    }
  }

  uint32_t LastMaker(uint32_t thread) const {
    const auto& calls = plan_.threads_[thread].calls;
    for (size_t i = calls.size(); i-- > 0;)
      if (plan_.calls_[calls[i]].result == kInProgress) return calls[i];
    return kNone;
  }

  void AddModule(const format::ModuleLoaded& module) {
    plan_.modules_[module.module] = {std::string(module.path), std::string(module.build_id),
                                     module.base, module.end};
  }

  void AddStack(const format::StackDefined& stack) {
    plan_.stacks_[stack.stack].assign(stack.frames.begin(), stack.frames.end());
  }

  void AddCrash(const format::Event& event, const format::Crash& crash) {
    RecordedEnd& end = plan_.end_;
    end.kind = EndKind::kCrash;
    end.thread = ThreadAt(event.thread);
    end.signal = crash.signal;
    end.signal_code = crash.code;
    end.sender_pid = crash.sender_pid;
    end.address = crash.address;
    end.pc = crash.pc;
    end.time_ns = event.time_ns;
    end.frames.assign(crash.frames.begin(), crash.frames.end());
    if (end.frames.empty() && crash.stack != 0) {
      auto it = plan_.stacks_.find(crash.stack);
      if (it != plan_.stacks_.end()) end.frames = it->second;
    }
  }

  void AddExit(const format::Event& event, const format::ProcessExit& exit) {
    RecordedEnd& end = plan_.end_;
    // The handlers of a crash may end in _exit: what comes last is how the process ended. exit()
    // runs handlers that may call _exit: the first word counts among exits.
    // An exec that failed is no end.
    if (end.kind == EndKind::kExit && end.exit_how != kExecuted) return;
    end.kind = EndKind::kExit;
    end.thread = ThreadAt(event.thread);
    end.exit_code = exit.code;
    end.exit_how = exit.how;
    end.time_ns = event.time_ns;
  }

  void AddChild(const format::Event& event, const format::Child& child) {
    RecordedThread& thread = Thread(event.thread);
    if (!child.ended) {
      thread.made[child.number] = child.pid;
      return;
    }
    thread.ends.push_back(child.pid);
    plan_.statuses_[child.pid] =
        child.signal != 0 ? static_cast<int>(child.signal & 0x7f) : (child.exit_code & 0xff) << 8;
  }

  void CountOperationsBefore(RecordedAsyncError& error) {
    for (const auto& [seq, call] : plan_.operations_[error.comm])
      if (plan_.calls_[call].time_ns <= error.time_ns) error.after_ops = seq;
  }

  struct PendingResults {
    uint32_t comm;
    uint64_t comm_seq;
    PoolRange outputs;
  };

  ReplayPlan& plan_;
  ApiKinds kinds_;
  bool behind_start_ = false;  // the event at hand
  std::string error_;
  std::unordered_map<uint32_t, uint32_t> thread_at_;
  std::unordered_map<uint32_t, std::vector<std::pair<uint64_t, uint32_t>>> open_;
  std::map<std::pair<uint32_t, uint64_t>, uint32_t> operation_at_;
  std::vector<PendingResults> pending_results_;
  std::unordered_map<uint32_t, uint32_t> connection_at_;                  // by number
  std::unordered_map<uint32_t, std::vector<RecordedRange>> file_ranges_;  // by number
};

Result<std::unique_ptr<ReplayPlan>> ReplayPlan::Build(
    const format::RankReader& reader, const ApiKinds& kinds,
    const format::RecordedCheckpoint* checkpoint) {
  std::unique_ptr<ReplayPlan> plan(new ReplayPlan());
  if (checkpoint != nullptr) plan->start_ = std::make_unique<LateStart>(*checkpoint);
  const format::TraceHeader& header = reader.header();
  plan->rank = header.rank;
  plan->pid = header.process.pid;
  plan->parent_pid = header.process.parent_pid;
  plan->level = static_cast<Level>(header.level);
  plan->nccl_version = header.process.nccl_version;
  plan->fate = reader.totals().fate;
  plan->kept_inputs = header.inputs;
  plan->working_directory = std::string(header.process.working_directory);
  PlanBuilder builder(*plan, kinds);
  std::unique_ptr<format::EventCursor> cursor = reader.Events();
  while (const format::Event* event = cursor->Next()) builder.Add(*event);
  DEJA_RETURN_IF_ERROR(builder.Finish());
  return plan;
}

uint32_t ReplayPlan::FindOperation(uint32_t comm, uint64_t seq) const {
  auto it = operations_.find(comm);
  if (it == operations_.end()) return kNone;
  const auto& ops = it->second;
  // Dense unless events were lost.
  if (seq >= 1 && seq <= ops.size() && ops[seq - 1].first == seq) return ops[seq - 1].second;
  auto at = std::lower_bound(ops.begin(), ops.end(), std::pair<uint64_t, uint32_t>{seq, 0});
  return at != ops.end() && at->first == seq ? at->second : kNone;
}

uint64_t ReplayPlan::LastOperation(uint32_t comm) const {
  auto it = operations_.find(comm);
  return it == operations_.end() || it->second.empty() ? 0 : it->second.back().first;
}

uint32_t ReplayPlan::FindThread(std::string_view name) const {
  auto it = thread_by_name_.find(name);
  return it == thread_by_name_.end() ? kNone : it->second;
}

const RecordedComm* ReplayPlan::FindComm(uint32_t number) const {
  for (const RecordedComm& comm : comms_)
    if (comm.number == number) return &comm;
  return nullptr;
}

int64_t ReplayPlan::AsyncErrorAfter(uint32_t comm, uint64_t ops) const {
  int64_t result = 0;
  for (const RecordedAsyncError& error : async_errors_)
    if (error.comm == comm && error.after_ops <= ops) result = error.result;
  return result;
}

std::span<const format::StackFrame> ReplayPlan::Stack(uint32_t stack) const {
  auto it = stacks_.find(stack);
  if (it == stacks_.end()) return {};
  return it->second;
}

const RecordedModule* ReplayPlan::Module(uint32_t module) const {
  auto it = modules_.find(module);
  return it == modules_.end() ? nullptr : &it->second;
}

}  // namespace deja::replayer
