#include "replayer/core/session.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "api/c10d_table.h"
#include "api/curand_table.h"
#include "api/find_api.h"
#include "api/libc_table.h"
#include "api/nccl_table.h"
#include "digest/digest.h"
#include "format/reader/replay_origin.h"
#include "format/scratch/scratch_names.h"
#include "include/compat/nccl.h"
#include "preload/cuda/device.h"
#include "preload/process/guard.h"
#include "preload/stack/python_stack.h"
#include "preload/stack/stack.h"
#include "replayer/core/ordered.h"
#include "replayer/fold/turns.h"
#include "replayer/report/ending.h"
#include "replayer/report/live_stack.h"
#include "replayer/report/live_trace.h"
#include "replayer/report/program_output.h"

namespace deja::replayer {

using api::ApiClass;

namespace {

void CopyText(char* out, size_t size, std::string_view text) {
  const size_t n = std::min(size - 1, text.size());
  std::memcpy(out, text.data(), n);
  out[n] = '\0';
}

// Bytes of a tensor whose numbers come from the trace; 0 if they make no sense.
uint64_t PayloadBytes(const format::Tensor& tensor) {
  const uint64_t size = digest::ElementSize(tensor.dtype);
  uint64_t bytes = 0;
  return __builtin_mul_overflow(tensor.count, size, &bytes) ? 0 : bytes;
}

bool GivesUp(uint32_t api) {
  return api == static_cast<uint32_t>(api::NcclApi::ncclCommAbort) ||
         api == static_cast<uint32_t>(api::NcclApi::ncclCommRevoke);
}

std::string SignalText(uint32_t signal) {
  const char* name = sigabbrev_np(static_cast<int>(signal));
  return name != nullptr ? std::string("SIG") + name : "signal " + std::to_string(signal);
}

std::string EndText(const ReplayPlan& plan) {
  const RecordedEnd& end = plan.end();
  if (end.kind == EndKind::kExit) return "exit " + std::to_string(end.exit_code);
  if (end.kind == EndKind::kCrash) {
    const std::string text = SignalText(end.signal);
    return end.FromOutside(plan.pid) ? text + ", sent by process " + std::to_string(end.sender_pid)
                                     : text;
  }
  if (plan.fate.known && plan.fate.signal != 0)
    return SignalText(plan.fate.signal) + ", which left no time to say where";
  return "no word of how the process ended (SIGKILL, or it was still running)";
}

}  // namespace

Session* Session::Open(const SessionOptions& options) {
  auto* session = new Session();  // never destroyed: hooks are called until the very end
  session->options_ = options;
  if (!options.is_companion) session->report_.Open(options.scratch);
  session->report_.SetChild(options.child_name);
  auto fail = [session](const Error& error) -> Session* {
    session->report_.Write(FailedLine{.message = error.message, .counters = std::nullopt});
    Say(error.message);
    return nullptr;
  };
  auto reader = format::RankReader::Open(options.folder);
  if (!reader) return fail(reader.error());
  session->reader_ = std::move(*reader);
  if (Status planned = session->ReadPlan(); !planned) return fail(planned.error());
  if (!options.out.empty()) {
    auto live_trace = LiveTrace::Open(options, *session->reader_, *session->plan_);
    if (!live_trace) return fail(live_trace.error());
    session->live_trace_ = *live_trace;
  }
  if (!options.fold.empty()) {
    auto fold = Fold::Open(options.fold);
    if (!fold) return fail(fold.error());
    session->fold_ = std::move(*fold);
  }
  session->Prepare();
  return session;
}

Status Session::ReadPlan() {
  std::optional<format::RecordedCheckpoint> from;
  if (options_.checkpoint != 0) {
    from = format::FindCheckpoint(*reader_, options_.checkpoint);
    if (!from || !from->complete())
      return Fail(ErrorCode::kNotFound, "the recording has no complete checkpoint " +
                                            std::to_string(options_.checkpoint));
  }
  PlannedEnd end{{}, options_.until_comm, options_.until_seq};
  if (options_.until_step != 0) end.step = options_.until_step - 1;
  if (options_.hold) end = {};
  DEJA_ASSIGN_OR_RETURN(plan_, ReplayPlan::Build(*reader_, {KindOfCall, GivesUp, api::InputKindOf},
                                                 from ? &*from : nullptr, end));
  return {};
}

void Session::StartClocks() {
  clocks_.SetMode(options_.clocks);
  const uint64_t begin = reader_->header().start_mono_ns;
  for (const auto& [source, first] : plan_->first_readings()) {
    const ClockFamily family = FamilyOf(static_cast<format::ClockSource>(source));
    if (family == ClockFamily::kNone) continue;
    // What the clock said when recording began; the processor time used was next to nothing.
    const auto since = static_cast<int64_t>(first.time_ns - begin);
    const bool is_cpu = family == ClockFamily::kProcessCpu || family == ClockFamily::kThreadCpu;
    clocks_.Start(family, is_cpu ? 0 : LiveClock(family) - (first.value - since));
  }
}

ThreadClocks& Session::Clocks(ThreadState& thread) {
  if (thread.clocks == nullptr) {
    const auto* streams =
        thread.recorded == kNone ? nullptr : &plan_->threads()[thread.recorded].clocks;
    thread.clocks = std::make_unique<ThreadClocks>(clocks_, streams);
  }
  return *thread.clocks;
}

void Session::Prepare() {
  StartClocks();
  const auto& threads = plan_->threads();
  remaining_of_ = std::make_unique<std::atomic<uint64_t>[]>(threads.size() + 1);
  wanted_ = std::make_unique<std::atomic<bool>[]>(threads.size() + 1);
  uint64_t total = 0;
  for (size_t i = 0; i < threads.size(); ++i) {
    remaining_of_[i] = threads[i].strict_events;
    total += threads[i].strict_events;
    for (const auto& [api, inputs] : threads[i].entropy)
      entropy_left_ += static_cast<int64_t>(inputs.size());
  }
  for (const auto& [call, launches] : plan_->launches())
    launches_left_ += static_cast<int64_t>(launches.more());
  remaining_ = total;
  payloads_ = std::make_unique<PayloadSource>(*reader_, *plan_);
  payloads_->Start();
  mpi_ = std::make_unique<ServedMpi>(*plan_);
  images_ = std::make_unique<Forks>(options_.scratch, *payloads_);
  deja_replay_state.rank = plan_->rank;
  CopyText(deja_replay_state.end_text, sizeof deja_replay_state.end_text, EndText(*plan_));
  FillFrames(deja_replay_state.end_frames, deja_replay_state.end_frame_count, plan_->end().frames);
}

ThreadState& Session::Thread() {
  preload::ThreadRecord& record = preload::Self();
  if (record.engine_state == nullptr) {
    auto* state = new ThreadState();  // its record is never freed either
    state->recorded = plan_->FindThread(record.name);
    const uint32_t slot = __atomic_fetch_add(&deja_replay_state.thread_count, 1, __ATOMIC_RELAXED);
    if (slot < std::size(deja_replay_state.threads)) {
      state->slot = slot;
      deja_replay_thread& shown = deja_replay_state.threads[slot];
      CopyText(shown.name, sizeof shown.name, record.name);
      shown.tid = static_cast<int32_t>(syscall(SYS_gettid));
    } else {
      __atomic_store_n(&deja_replay_state.thread_count, std::size(deja_replay_state.threads),
                       __ATOMIC_RELAXED);
    }
    record.engine_state = state;
  }
  auto& state = *static_cast<ThreadState*>(record.engine_state);
  if (started_late() && !state.started_late) CatchUp(state);
  return state;
}

void Session::StartLate() {
  const LateStart& start = *plan_->start();
  uint64_t total = 0;
  int64_t entropy = 0;
  for (uint32_t i = 0; i < plan_->threads().size(); ++i) {
    const RecordedThread& thread = plan_->threads()[i];
    const ThreadPosition& position = start.PositionOf(i);
    remaining_of_[i] = thread.strict_events - position.strict_events;
    total += thread.strict_events - position.strict_events;
    entropy += static_cast<int64_t>(thread.entropy_events - position.entropy_events);
  }
  remaining_ = total;
  entropy_left_ = entropy;
  payloads_->StartLate(*plan_);
  {
    std::lock_guard<std::mutex> lock(comm_mutex_);
    for (ServedComm* comm : comms_) comm->SetOperations(start.OperationsOf(comm->number()));
  }
  started_late_ = true;
  if (live_trace_ != nullptr) live_trace_->StartLate(start.checkpoint().at.time_ns);
  if (total == 0) OnAllEventsMade(*this);
}

void Session::CatchUp(ThreadState& thread) const {
  thread.started_late = true;
  if (thread.recorded == kNone) return;
  const ThreadPosition& position = plan_->start()->PositionOf(thread.recorded);
  thread.next_call = position.calls;
  thread.next_snapshot = position.snapshots;
  thread.next_end = std::max(thread.next_end, position.ends);
  thread.next_by_api = position.by_api;
  thread.next_entropy = position.entropy;
  thread.next_by_key = position.by_key;
  thread.entropy_served = position.entropy_events;
  thread.mpi_polls = 0;
  // Of files of the machine the opens are counted, not the answers.
  for (auto& [key, next] : thread.next_by_key) {
    if (api::InputKindOf(key.first) != api::InputKind::kMachineFile || next == 0) continue;
    const auto& answers = plan_->threads()[thread.recorded].by_key.at(key);
    next = static_cast<uint32_t>(plan_->inputs()[answers[next - 1]].result) + 1;
  }
}

bool Session::HasComm(uint32_t number) const {
  std::lock_guard<std::mutex> lock(comm_mutex_);
  return std::any_of(comms_.begin(), comms_.end(),
                     [&](const ServedComm* comm) { return comm->number() == number; });
}

void Session::Consume(uint32_t recorded) {
  if (recorded == kNone || remaining_of_[recorded].load() == 0) return;
  remaining_of_[recorded].fetch_sub(1);
  remaining_.fetch_sub(1);
}

uint64_t Session::NewComm(const RecordedComm& recorded, const RecordedCall& call) {
  // What is served waits for nobody: the device comes to it.
  constexpr uint32_t kPatienceMs = 15 * 60 * 1000;
  if (!ServedComm::AnyHeld()) preload::SetDevicePatience(kPatienceMs);
  preload::LookForDevice();
  preload::TheDevice().PrepareDigests();
  const bool unfinished = call.result == ncclInProgress && !plan_->WasUsed(recorded.number);
  auto* comm = new ServedComm(recorded, unfinished);  // never freed: see served_comm.h
  if (live_trace_ != nullptr) live_trace_->Comm(recorded);
  if (fold_ != nullptr && call.api < api::kLibcFamily && fold_->IsWhole(*comm))
    Thread().new_comms.push_back(comm);
  std::lock_guard<std::mutex> lock(comm_mutex_);
  comms_.push_back(comm);
  return comm->handle();
}

void Session::MeetNewComms(ThreadState& thread, const RecordedCall& call) {
  if (thread.new_comms.empty()) return;
  const Status met = [&] {
    const Turns::Rest rest;
    return fold_->Meet(thread.new_comms);
  }();
  thread.new_comms.clear();
  if (!met)
    FailReplay(*this, thread,
               "meeting the other ranks of the communicators of " + ApiText(call.api) + ": " +
                   met.error().message,
               call.stack);
}

void Session::MarkMade(uint32_t call) {
  if (!plan_->IsAwaited(call)) return;
  std::lock_guard<std::mutex> lock(made_mutex_);
  made_.insert(call);
  made_changed_.notify_all();
}

void Session::WaitUntilMade(uint32_t call) {
  std::unique_lock<std::mutex> lock(made_mutex_);
  made_changed_.wait(lock, [&] { return made_.count(call) != 0; });
}

uint64_t Session::OperationsOf(uint32_t comm) const {
  std::lock_guard<std::mutex> lock(comm_mutex_);
  for (const ServedComm* served : comms_)
    if (served->number() == comm) return served->operations();
  return 0;
}

uint64_t Session::MostOperations() const {
  std::lock_guard<std::mutex> lock(comm_mutex_);
  uint64_t most = 0;
  for (const ServedComm* served : comms_) most = std::max(most, served->operations());
  return most;
}

Session::Missing Session::Classify(const ThreadState& thread) const {
  if (thread.recorded == kNone) return Missing::kEndOfRecording;
  if (RemainingOf(thread.recorded) != 0) return Missing::kDivergence;
  return plan_->threads()[thread.recorded].ended ? Missing::kDivergence : Missing::kEndOfRecording;
}

Divergence Session::NewDivergence(DivergenceKind kind, const ThreadState& thread) const {
  Divergence divergence;
  divergence.kind = kind;
  divergence.thread = preload::Self().name;
  divergence.has_step = deja_replay_state.has_step != 0;
  divergence.step = deja_replay_state.step;
  (void)thread;
  return divergence;
}

void Session::Diverge(ThreadState& thread, Divergence divergence, uint32_t recorded_stack) {
  divergence.recorded_stack = RecordedStack(recorded_stack);
  divergence.live_stack = LiveStack();
  divergences_.fetch_add(1);
  divergence.WriteTo(report_);
  if (live_trace_ != nullptr) live_trace_->Note("divergence at " + divergence.Describe());
  if (options_.stop_on_divergence || deja_replay_state.watched != 0)
    Stop(thread, kDejaStopDivergence, "divergence at " + divergence.Describe(), {}, recorded_stack);
  if (!options_.stop_on_divergence) return;
  report_.Write(CountedLine{CountersNow()});
  FlushOutput();  // what the program has printed so far is worth seeing
  EndProcess(4);
}

void Session::ReportSent(std::string what) {
  Divergence divergence = NewDivergence(DivergenceKind::kSent, Thread());
  divergence.what = std::move(what);
  divergence.live_stack = LiveStack();
  divergences_.fetch_add(1);
  divergence.WriteTo(report_);
  Say(divergence.what);
}

void Session::CountLaunch(uint32_t call, uint64_t launch, bool produced) {
  CountActivity();
  const auto it = plan_->launches().find(call);
  // A call's first launch is the call itself; of two directions the results are counted.
  if (launch != 0 && it != plan_->launches().end() && it->second.produced.empty() != produced)
    launches_left_.fetch_sub(1);
}

void Session::SetTransfersLeft(uint64_t left) {
  if (transfers_left_.exchange(left) != 0 && left == 0 && remaining() == 0) OnAllEventsMade(*this);
}

void Session::Enter(ThreadState& thread, const char* api, uint32_t comm, uint64_t comm_seq,
                    uint32_t stack) {
  if (thread.slot == kNone) return;
  deja_replay_thread& shown = deja_replay_state.threads[thread.slot];
  CopyText(shown.api, sizeof shown.api, api);
  shown.comm = comm;
  shown.comm_seq = comm_seq;
  shown.stack = stack;
}

bool Session::Arrive(ThreadState& thread, uint64_t place, bool stops) {
  if (thread.slot == kNone) return false;
  deja_replay_state_t& state = deja_replay_state;
  deja_replay_thread& shown = state.threads[thread.slot];
  shown.recent[shown.places % kDejaRecentPlaces] = place;
  ++shown.places;
  if (state.watched == 0) return false;
  const auto at_place = [&] {
    return state.stop_place == place &&
           std::strncmp(shown.name, state.stop_thread, sizeof shown.name) == 0;
  };
  if (state.keep_images != 0) images_->Keep(shown, place, MostOperations(), stops || at_place());
  // An image that goes on has been told something else.
  if (!at_place()) return false;
  state.stop_place = 0;
  return true;
}

void Session::Hold(std::string_view where) {
  FlushOutput();
  report_.Write(HeldLine{.text = where});
  const std::string go_on = options_.scratch + format::kGoOnFile;
  constexpr timespec kStep{0, 20'000'000};
  // It may be restored from an image of the process long after.
  while (syscall(SYS_faccessat, AT_FDCWD, go_on.c_str(), F_OK) != 0)
    syscall(SYS_nanosleep, &kStep, nullptr);
}

void Session::EndAsAsked(std::string_view where) {
  if (options_.hold) return Hold(where);
  if (live_trace_ != nullptr) live_trace_->Note(format::kReplayEnded);
  report_.Write(UntilLine{.text = where, .counters = CountersNow()});
  FlushOutput();
  EndProcess(0);
}

void Session::FillFrames(deja_replay_frame* out, uint32_t& count,
                         std::span<const format::StackFrame> frames) const {
  count = 0;
  for (const format::StackFrame& frame : frames) {
    if (count == format::kMaxStackFrames) break;
    const RecordedModule* module = plan_->Module(frame.module);
    out[count].module = module == nullptr ? 0 : reinterpret_cast<uint64_t>(module->path.c_str());
    out[count].offset = frame.offset;
    ++count;
  }
}

void Session::Stop(ThreadState& thread, DejaStopReason reason, std::string_view message,
                   std::span<const ShownTensor> tensors, uint32_t recorded_stack) {
  std::lock_guard<std::mutex> one_at_a_time(stop_mutex_);
  deja_replay_state_t& state = deja_replay_state;
  std::vector<std::vector<std::byte>> recorded_bytes;
  CopyText(state.message, sizeof state.message, message);
  state.stopped_thread = thread.slot;
  if (state.watched != 0) {
    FillFrames(state.frames, state.frame_count, plan_->Stack(recorded_stack));
    state.python_frame_count = 0;
    for (const format::StackFrame& frame : preload::PythonStack(preload::FindPythonStack())) {
      const char* path = preload::PathOfPythonModule(frame.module);
      state.python_frames[state.python_frame_count++] = {reinterpret_cast<uint64_t>(path),
                                                         frame.offset};
    }
    state.tensor_count = 0;
    auto show = [&](const char* name, uint32_t role, const format::Tensor& recorded,
                    const void* live, uint32_t comparison) {
      if (state.tensor_count == std::size(state.tensors)) return;
      deja_replay_tensor& out = state.tensors[state.tensor_count++];
      CopyText(out.name, sizeof out.name, name);
      out.role = role;
      out.dtype = recorded.dtype;
      out.count = recorded.count;
      out.live = reinterpret_cast<uint64_t>(live);
      out.nan_count = recorded.stats.nan_count;
      out.comparison = comparison;
      out.recorded = 0;
      if (auto bytes = payloads_->Read(recorded.hash, PayloadBytes(recorded))) {
        recorded_bytes.push_back(std::move(*bytes));
        out.recorded = reinterpret_cast<uint64_t>(recorded_bytes.back().data());
      }
    };
    for (const ShownTensor& t : tensors) show(t.name, t.role, *t.recorded, t.live, t.comparison);
    std::lock_guard<std::mutex> snapshots(snapshot_mutex_);
    for (const auto& [name, view] : snapshot_views_)
      show(name.c_str(), 3, view.recorded->tensor, view.live, view.comparison);
  }
  state.stop_next = 0;
  state.stop_nan = reason == kDejaStopNan ? 0 : state.stop_nan;
  UnmuteOutput();
  if (state.watched != 0) FlushOutput();
  deja_replay_stop(&state, reason);
  for (uint32_t i = 0; i < state.tensor_count; ++i) state.tensors[i].recorded = 0;
}

void Session::RememberSnapshot(const RecordedSnapshot& recorded, const void* live,
                               uint32_t comparison) {
  std::lock_guard<std::mutex> lock(snapshot_mutex_);
  snapshot_views_[recorded.name] = {&recorded, live, comparison};
}

std::vector<StackLine> Session::Lines(std::span<const format::StackFrame> frames) const {
  std::vector<StackLine> lines;
  for (const format::StackFrame& frame : frames) {
    const RecordedModule* module = plan_->Module(frame.module);
    if (module == nullptr)
      lines.push_back({"", "", frame.offset});
    else
      lines.push_back({module->path, module->build_id, frame.offset});
  }
  return lines;
}

std::vector<StackLine> Session::RecordedStack(uint32_t stack) const {
  return Lines(plan_->Stack(stack));
}

void Session::EndProcess(int code) {
  for (;;) syscall(SYS_exit_group, code);
}

void Session::CountCompared(bool equal) {
  __atomic_fetch_add(&deja_replay_state.digests_compared, 1, __ATOMIC_RELAXED);
  if (!equal) __atomic_fetch_add(&deja_replay_state.digests_different, 1, __ATOMIC_RELAXED);
}

CountersPart Session::CountersNow() const {
  const deja_replay_state_t& state = deja_replay_state;
  CountersPart counters;
  counters.operations = __atomic_load_n(&state.operations, __ATOMIC_RELAXED);
  if (fold_ != nullptr) counters.computed = computed_.load();
  counters.digests_compared = __atomic_load_n(&state.digests_compared, __ATOMIC_RELAXED);
  counters.digests_different = __atomic_load_n(&state.digests_different, __ATOMIC_RELAXED);
  counters.divergences = divergences_.load();
  counters.remaining = remaining_.load();
  if (plan_->end().thread != kNone)
    counters.remaining_on_last_thread = RemainingOf(plan_->end().thread);
  if (state.has_step != 0) counters.step = state.step;
  return counters;
}

const char* ShortName(const char* name) {
  if (std::strncmp(name, "nccl", 4) == 0) return name + 4;
  return std::strncmp(name, "c10d_", 5) == 0 ? name + 5 : name;
}

std::string ApiText(uint32_t api) {
  const api::ApiInfo* info = api::FindApi(api);
  return info != nullptr ? ShortName(info->name) : "call " + std::to_string(api);
}

CallKind KindOfCall(uint32_t api) {
  const api::ApiInfo* info = api::FindNccl(api);
  if (info == nullptr) info = api::FindC10d(api);
  if (info == nullptr) info = api::FindCurand(api);
  if (info == nullptr) return CallKind::kOrdered;
  switch (info->klass) {
    case ApiClass::kCollective:
    case ApiClass::kP2p:
      return CallKind::kOperation;
    case ApiClass::kGroup:
      return CallKind::kGroup;
    case ApiClass::kQuery:
      return CallKind::kQuery;
    default:
      return CallKind::kOrdered;
  }
}

}  // namespace deja::replayer
