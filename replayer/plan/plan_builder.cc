#include "replayer/plan/plan_builder.h"

#include <algorithm>
#include <span>

#include "api/find_api.h"
#include "format/log/rank_log.h"
#include "include/compat/nccl.h"

namespace deja::replayer {

using format::EventKind;

namespace {
constexpr uint32_t kExecuted = 2;  // ProcessExit.how

bool OnlyReads(uint32_t api, uint32_t param) {
  const api::ApiInfo* info = api::FindApi(api);
  return info != nullptr && param < info->param_count && IsOnlyRead(info->params[param].role);
}
}  // namespace

void PlanBuilder::Add(const format::Event& event) {
  if (!plan_.pages_.Count(event)) return TooLarge();
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
      if (error.given_up_by == 0)
        plan_.async_errors_.push_back({error.comm, error.result, event.time_ns, 0});
      break;
    }
    case EventKind::kInputFile:
      if (!event.As<format::InputFile>()->program) AddFile(event, *event.As<format::InputFile>());
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
    case EventKind::kGarbageCollection:
      AddCollection(event, *event.As<format::GarbageCollection>());
      break;
    case EventKind::kStep:
      if (plan_.start_ != nullptr) plan_.start_->AddStep(event);
      break;
    default:
      break;  // notes are positions, not something to serve
  }
}

Status PlanBuilder::Finish() {
  if (!error_.empty()) return Fail(ErrorCode::kCorrupt, error_);
  ResolveConnections();
  ResolveFiles();
  FindWaits();
  ListActingCollections();
  auto entered_before = [this](uint32_t a, uint32_t b) {
    return plan_.calls_[a].time_ns < plan_.calls_[b].time_ns;
  };
  for (uint32_t i = 0; i < plan_.calls_.size(); ++i)
    if (plan_.calls_[i].outputs.size != 0) plan_.served_order_.push_back(i);
  std::stable_sort(plan_.served_order_.begin(), plan_.served_order_.end(), entered_before);
  for (RecordedAsyncError& error : plan_.async_errors_) CountOperationsBefore(error);
  // A signal from outside says nothing of where the thread was: in a replay it goes on.
  if (plan_.end_.thread != kNone && !plan_.end_.FromOutside(plan_.pid))
    plan_.threads_[plan_.end_.thread].ended = true;
  if (plan_.start_ != nullptr) plan_.start_->Finish(plan_.threads_);
  for (uint32_t i = 0; i < plan_.threads_.size(); ++i)
    plan_.thread_by_name_.emplace(plan_.threads_[i].name, i);
  return {};
}

uint32_t PlanBuilder::ThreadAt(uint32_t index) {
  auto [it, is_new] = thread_at_.try_emplace(index, plan_.threads_.size());
  if (is_new) {
    plan_.threads_.emplace_back();
    plan_.threads_.back().index = index;
    plan_.threads_.back().name = "?" + std::to_string(index);
  }
  return it->second;
}

void PlanBuilder::StartThread(const format::ThreadStart& start) {
  Thread(start.thread).name = std::string(start.name);
}

void PlanBuilder::Enter(const format::Event& event, const format::CallEnter& enter) {
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
  call.index = index;
  call.args = plan_.pages_.words();
  call.inputs = plan_.pages_.tensors();
  call.hashed_input = !enter.inputs.empty() && !enter.inputs[0].hash.IsZero();
  call.tells_end = enter.tells_end != 0;
  call.reads_at_end = enter.reads_at_end != 0;
  call.blob = Keep(plan_.bytes_, enter.blob);
  RecordedThread& thread = plan_.threads_[call.thread];
  call.ordinal = static_cast<uint32_t>(thread.strict_events);
  plan_.calls_.push_back(call);
  open_[call.thread].emplace_back(event.seq, index);
  const CallKind kind = kinds_.call(enter.api);
  if (kind == CallKind::kOperation && enter.comm != 0 && enter.comm_seq != 0) {
    NumberOperation(plan_.operations_[enter.comm], index);
    if (plan_.start_ != nullptr && !behind_start_)
      plan_.start_->AddOperation(enter.comm, enter.comm_seq);
    ++thread.strict_events;
    if (auto early = early_results_.extract({enter.comm, enter.comm_seq}))
      for (const EarlyResults& results : early.mapped())
        AddResults(index, results.range, results.tensors);
  } else if (kind != CallKind::kOrdered) {
    thread.by_api[enter.api].push_back(index);
  } else {
    thread.calls.push_back(index);
    ++thread.strict_events;
  }
}

// Batches of threads may be in another order than what they hold.
void PlanBuilder::NumberOperation(std::vector<uint32_t>& operations, uint32_t call) const {
  const uint64_t number = plan_.calls_[call].comm_seq;
  const auto is_before = [this](uint64_t wanted, uint32_t other) {
    return wanted < plan_.calls_[other].comm_seq;
  };
  const bool in_order = operations.empty() || plan_.calls_[operations.back()].comm_seq <= number;
  operations.insert(in_order
                        ? operations.end()
                        : std::upper_bound(operations.begin(), operations.end(), number, is_before),
                    call);
}

void PlanBuilder::Leave(const format::Event& event, const format::CallLeave& leave) {
  auto& open = open_[ThreadAt(event.thread)];
  for (size_t i = open.size(); i-- > 0;) {
    if (open[i].first != leave.enter_seq) continue;
    RecordedCall& call = plan_.calls_[open[i].second];
    call.left = true;
    call.left_ns = event.time_ns;
    call.result = leave.result;
    call.outs = plan_.pages_.words();
    call.out_blob = Keep(plan_.bytes_, leave.blob);
    open.erase(open.begin() + static_cast<std::ptrdiff_t>(i));
    return;
  }
}

void PlanBuilder::AddResultsOfOpenCall(const format::Event& event,
                                       const format::CallResults& results) {
  for (const auto& [seq, index] : open_[ThreadAt(event.thread)]) {
    if (seq != results.comm_seq) continue;
    RecordedCall& call = plan_.calls_[index];
    const PoolRange more = plan_.pages_.tensors();
    if (call.outputs.size == 0) {
      call.outputs = more;
    } else if (call.outputs.at + call.outputs.size == more.at) {
      call.outputs.size += more.size;
    } else {  // other calls' lie between
      std::vector<format::Tensor> all = plan_.Tensors(call.outputs);
      all.insert(all.end(), results.outputs.begin(), results.outputs.end());
      if (!plan_.pages_.Keep(all, call.outputs)) TooLarge();
    }
    call.has_results = true;
  }
}

void PlanBuilder::Results(const format::Event& event, const format::CallResults& results) {
  if (results.comm == 0) return AddResultsOfOpenCall(event, results);
  const PoolRange outputs = plan_.pages_.tensors();
  const std::span<const format::Tensor> tensors(results.outputs.begin(), results.outputs.size());
  const uint32_t index = plan_.LatestOperation(results.comm, results.comm_seq);
  if (index != kNone) return AddResults(index, outputs, tensors);
  early_results_[{results.comm, results.comm_seq}].push_back(
      {outputs, {tensors.begin(), tensors.end()}});
}

void PlanBuilder::AddResults(uint32_t index, PoolRange results,
                             std::span<const format::Tensor> tensors) {
  RecordedCall& call = plan_.calls_[index];
  if (results.size == 1 && call.inputs.size == 1 && OnlyReads(call.api, tensors[0].param)) {
    if (call.has_input) {
      auto& read = plan_.launches_[index].read;
      if (read.empty()) read.push_back(FirstOf(call.inputs));
      read.push_back(tensors[0]);
    } else if (!call.hashed_input) {
      call.inputs = results;
      call.has_input = true;
    }
    return;
  }
  if (call.has_results && call.outputs.size == 1 && results.size == 1) {
    auto& produced = plan_.launches_[index].produced;
    if (produced.empty()) produced.push_back(FirstOf(call.outputs));
    produced.push_back(tensors[0]);
    return;
  }
  call.outputs = results;
  // Later launches of a graph may say so, too.
  call.aborted = results.size != 0 &&
                 tensors[0].payload == static_cast<uint32_t>(format::PayloadState::kAborted);
  call.has_results = true;
}

void PlanBuilder::FindWaits() {
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

void PlanBuilder::AddSnapshot(const format::Event& event, const format::Snapshot& snapshot) {
  if (snapshot.checkpoint != 0) return;
  const uint32_t thread = ThreadAt(event.thread);
  plan_.threads_[thread].snapshots.push_back(static_cast<uint32_t>(plan_.snapshots_.size()));
  ++plan_.threads_[thread].strict_events;
  plan_.snapshots_.push_back(
      {std::string(snapshot.name), snapshot.tensor, snapshot.stack, thread, event.time_ns});
}

void PlanBuilder::AddComm(const format::Event& event, const format::CommCreated& created) {
  const uint32_t thread = ThreadAt(event.thread);
  const auto at = static_cast<uint32_t>(plan_.comms_.size());
  plan_.comms_.push_back({created.comm, created.hash, created.rank, created.nranks, created.parent,
                          created.device, std::string(created.name), created.joined_as});
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

uint32_t PlanBuilder::LastMaker(uint32_t thread) const {
  const auto& calls = plan_.threads_[thread].calls;
  for (size_t i = calls.size(); i-- > 0;)
    if (plan_.calls_[calls[i]].result == ncclInProgress) return calls[i];
  return kNone;
}

void PlanBuilder::AddModule(const format::ModuleLoaded& module) {
  plan_.modules_[module.module] = {std::string(module.path), std::string(module.build_id),
                                   module.base, module.end};
}

void PlanBuilder::AddStack(const format::StackDefined& stack) {
  plan_.stacks_[stack.stack].assign(stack.frames.begin(), stack.frames.end());
}

void PlanBuilder::AddCrash(const format::Event& event, const format::Crash& crash) {
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

void PlanBuilder::AddExit(const format::Event& event, const format::ProcessExit& exit) {
  RecordedEnd& end = plan_.end_;
  // The handlers of a crash may end in _exit. So what comes last is how the process ended. But
  // exit() runs handlers that may call _exit, so the first event counts among exits. An exec that
  // failed is no end.
  if (end.kind == EndKind::kExit && end.exit_how != kExecuted) return;
  end.kind = EndKind::kExit;
  end.thread = ThreadAt(event.thread);
  end.exit_code = exit.code;
  end.exit_how = exit.how;
  end.time_ns = event.time_ns;
}

void PlanBuilder::AddChild(const format::Event& event, const format::Child& child) {
  RecordedThread& thread = Thread(event.thread);
  if (!child.ended) {
    thread.made[child.number] = child.pid;
    return;
  }
  thread.ends.push_back(child.pid);
  plan_.met_by_then_.AddEnd(ThreadAt(event.thread), child.pid, event.time_ns);
  plan_.statuses_[child.pid] =
      child.signal != 0 ? static_cast<int>(child.signal & 0x7f) : (child.exit_code & 0xff) << 8;
}

void PlanBuilder::CountOperationsBefore(RecordedAsyncError& error) {
  for (const uint32_t call : plan_.operations_[error.comm])
    if (plan_.calls_[call].time_ns <= error.time_ns) error.after_ops = plan_.calls_[call].comm_seq;
}

}  // namespace deja::replayer
