#include "replayer/nccl/process_groups.h"

#include <algorithm>

#include "api/c10d_table.h"
#include "replayer/core/ending.h"
#include "replayer/core/ordered.h"
#include "replayer/nccl/nccl_serve.h"
#include "replayer/nccl/served_comms.h"

namespace deja::replayer {

using api::C10dApi;
using preload::GroupCall;
using preload::GroupState;

namespace {

// Positions of c10d_work's arguments.
constexpr size_t kOperation = 1;
constexpr size_t kSource = 2;

}  // namespace

ProcessGroups::ProcessGroups(Session& session) : session_(session) {
  const ReplayPlan& plan = session.plan();
  for (uint32_t i = 0; i < plan.calls().size(); ++i) {
    const RecordedCall& call = plan.calls()[i];
    if (call.api == static_cast<uint32_t>(C10dApi::c10d_work) && call.args.size > kSource)
      ends_.emplace(std::pair(call.comm, plan.Words(call.args)[kOperation]), i);
    else if (api::IsC10dStore(call.api))
      stores_[{call.api, std::string(plan.Bytes(call.blob))}].calls.push_back(i);
  }
  for (auto& [key, answers] : stores_)
    std::stable_sort(answers.calls.begin(), answers.calls.end(), [&plan](uint32_t a, uint32_t b) {
      return plan.calls()[a].time_ns < plan.calls()[b].time_ns;
    });
}

void ProcessGroups::Serve(ThreadState& thread, GroupCall& call) {
  call.served = true;
  if (call.info->klass != api::ApiClass::kLifecycle) return ServeIssued(thread, call);
  const RecordedCall* recorded = ServeOrdered(session_, thread, call);
  if (recorded != nullptr && recorded->result != 0) {
    call.error = session_.plan().Bytes(recorded->out_blob);
    call.state = GroupState::kRaised;
  }
}

void ProcessGroups::ServeIssued(ThreadState& thread, GroupCall& call) {
  const uint32_t index = ServeOperation(session_, thread, call);
  if (index == kNone) return;
  const RecordedCall& recorded = session_.plan().calls()[index];
  call.operation = recorded.comm_seq;
  if (recorded.result != 0) {
    call.error = session_.plan().Bytes(recorded.out_blob);
    call.state = GroupState::kRaised;
    return;
  }
  if (recorded.has_results) call.state = GroupState::kDone;
  auto end = ends_.find({recorded.comm, recorded.comm_seq});
  if (end == ends_.end()) return;
  const RecordedCall& work = session_.plan().calls()[end->second];
  call.src = static_cast<int>(session_.plan().Words(work.args)[kSource]);
  if (work.result == 0) return;
  call.state = GroupState::kFailed;
  call.error = session_.plan().Bytes(work.blob);
}

void ProcessGroups::WaitForUnknown(ThreadState& thread, const preload::GroupEnd& end) {
  const ServedComm* comm = ServedComm::From(end.group);
  if (comm == nullptr) return;
  const uint32_t index = session_.plan().FindOperation(comm->number(), end.operation);
  const RecordedCall* recorded = index == kNone ? nullptr : &session_.plan().calls()[index];
  const std::string name = recorded == nullptr ? "an operation" : ApiText(recorded->api);
  Park(session_, thread, name, comm->number(), end.operation, recorded);
}

std::string_view ProcessGroups::ValueOf(const RecordedCall& recorded) {
  const ReplayPlan& plan = session_.plan();
  const auto tensors = plan.Tensors(recorded.outputs);
  if (tensors.empty()) return plan.Bytes(recorded.out_blob);
  std::vector<std::byte>& kept = long_values_[recorded.index];
  if (kept.empty())
    if (auto bytes = session_.payloads().Read(tensors[0].hash, tensors[0].count))
      kept = std::move(*bytes);
  return {reinterpret_cast<const char*>(kept.data()), kept.size()};
}

void ProcessGroups::StartLate(const LateStart& /*start*/) {
  std::lock_guard lock(mutex_);
  const ReplayPlan& plan = session_.plan();
  for (auto& [key, answers] : stores_) {
    while (answers.next < answers.calls.size()) {
      const RecordedCall& call = plan.calls()[answers.calls[answers.next]];
      if (plan.IsAhead(call.thread, call.enter_seq, call.time_ns)) break;
      ++answers.next;
    }
  }
}

void ProcessGroups::ServeStore(ThreadState& thread, preload::StoreCall& call) {
  session_.progress().CountActivity();
  const RecordedCall* recorded = nullptr;
  {
    std::lock_guard lock(mutex_);
    auto found = stores_.find({call.info->id, std::string(call.key)});
    if (found == stores_.end()) {
      call.answer = preload::AnswerFrom::kNone;
      return;
    }
    Answers& answers = found->second;
    const size_t at = std::min(answers.next, answers.calls.size() - 1);
    ++answers.next;
    recorded = &session_.plan().calls()[answers.calls[at]];
    if (recorded->left) call.value = ValueOf(*recorded);
  }
  if (!recorded->left) Park(session_, thread, ApiText(recorded->api), 0, 0, recorded);
  call.answer = preload::AnswerFrom::kServed;
  call.result = static_cast<uint64_t>(recorded->result);
}

}  // namespace deja::replayer
