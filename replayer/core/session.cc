#include "replayer/core/session.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <optional>

#include "api/c10d_table.h"
#include "api/curand_table.h"
#include "api/find_api.h"
#include "api/libc_table.h"
#include "api/nccl_table.h"
#include "common/os/activity_count.h"
#include "format/reader/replay_origin.h"
#include "preload/process/threads.h"
#include "replayer/core/ending.h"
#include "replayer/process/end_process.h"
#include "replayer/report/program_output.h"

namespace deja::replayer {

using api::ApiClass;

namespace {

bool GivesUp(uint32_t api) {
  return api == static_cast<uint32_t>(api::NcclApi::ncclCommAbort) ||
         api == static_cast<uint32_t>(api::NcclApi::ncclCommRevoke);
}

}  // namespace

void Session::ReportFailure(const Report& report, std::string_view message) {
  report.Write(FailedLine{.message = message, .counters = std::nullopt});
  Say(message);
}

Session* Session::Open(const SessionOptions& options) {
  auto* session = new Session();  // never destroyed: hooks are called until the very end
  session->options_ = options;
  if (!options.is_companion) session->report_.Open(options.scratch);
  session->report_.SetChild(options.child_name);
  auto fail = [session](const Error& error) -> Session* {
    ReportFailure(session->report_, error.message);
    return nullptr;
  };
  format::ReadOptions read;
  read.spill_beyond = format::kPayloadsInMemory;
  read.spill_folder = options.scratch;
  auto reader = format::RankReader::Open(options.folder, read);
  if (!reader) return fail(reader.error());
  session->reader_ = std::move(*reader);
  if (Status planned = session->ReadPlan(); !planned) return fail(planned.error());
  const ReplayPlan& plan = *session->plan_;
  if (!options.out.empty()) {
    auto live_trace =
        LiveTrace::Open({options.out, options.job_id, options.recording}, *session->reader_, plan);
    if (!live_trace) return fail(live_trace.error());
    session->live_trace_ = *live_trace;
  }
  session->progress_ =
      std::make_unique<Progress>(plan, options.hold ? nullptr : MapActivityCount(options.scratch));
  if (session->options_.is_late) session->progress_->child_signals().LeaveLive();
  session->payloads_ = std::make_unique<PayloadSource>(*session->reader_, plan);
  session->payloads_->Start();
  session->stops_ = std::make_unique<Stops>(session->options_, plan, *session->payloads_);
  session->divergences_ = std::make_unique<DivergenceReporter>(
      session->options_, plan, *session->progress_, *session->stops_, session->report_,
      session->live_trace_);
  session->made_calls_ = std::make_unique<MadeCalls>(plan);
  deja_replay_state.rank = plan.rank;
  session->stops_->ShowEnd();
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
  progress_->StartLate();
  payloads_->StartLate(*plan_);
  for (LateStarter* starter : late_starters_) starter->StartLate(start);
  started_late_ = true;
  if (live_trace_ != nullptr) live_trace_->StartLate(start.checkpoint().at.time_ns);
  if (progress_->remaining() == 0) OnAllEventsMade(*this);
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
  // For files of the machine the opens are counted, not the answers.
  for (auto& [key, next] : thread.next_by_key) {
    if (api::InputKindOf(key.first) != api::InputKind::kMachineFile || next == 0) continue;
    const auto& answers = plan_->threads()[thread.recorded].by_key.at(key);
    next = static_cast<uint32_t>(plan_->inputs()[answers[next - 1]].result) + 1;
  }
}

void Session::EndAsAsked(std::string_view where) {
  if (options_.hold) {
    FlushOutput();
    report_.Write(HeldLine{.text = where});
    return stops_->Hold();
  }
  if (live_trace_ != nullptr) live_trace_->Note(format::kReplayEnded);
  report_.Write(UntilLine{.text = where, .counters = divergences_->CountersNow()});
  FlushOutput();
  EndProcess(0);
}

const char* ShortName(const char* name) {
  if (std::strncmp(name, "nccl", 4) == 0) return name + 4;
  if (std::strncmp(name, "c10d_", 5) == 0) return name + 5;
  return std::strcmp(name, "_ZNSt13random_device9_M_getvalEv") == 0 ? "random_device" : name;
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
