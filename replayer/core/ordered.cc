#include "replayer/core/ordered.h"

#include <algorithm>
#include <string>
#include <vector>

#include "replayer/core/ending.h"

namespace deja::replayer {

using preload::Call;

namespace {

// "AllReduce #62 of comm 0": the first operation of this thread that the replay has not come to.
std::string FirstNotMade(const Session& session, const ThreadState& thread,
                         const RecordedCall& before) {
  const ReplayPlan& plan = session.plan();
  for (const RecordedCall& call : plan.calls()) {
    if (call.thread != thread.recorded || call.enter_seq >= before.enter_seq) continue;
    if (call.comm_seq == 0 || call.comm_seq <= session.operations().OperationsOf(call.comm))
      continue;
    return ApiText(call.api) + " #" + std::to_string(call.comm_seq) + " of comm " +
           std::to_string(call.comm - 1);
  }
  return {};
}

}  // namespace

const RecordedCall* NextOrdered(Session& session, ThreadState& thread, const Call& call,
                                uint32_t comm) {
  const ReplayPlan& plan = session.plan();
  const std::vector<uint32_t>* queue =
      thread.recorded == kNone ? nullptr : &plan.threads()[thread.recorded].calls;
  if (queue == nullptr || thread.next_call >= queue->size()) {
    session.stops().Enter(thread, ShortName(call.info->name), comm, 0, 0);
    if (session.progress().Classify(thread) == Progress::Missing::kEndOfRecording)
      Park(session, thread, ShortName(call.info->name), comm, 0, nullptr);
    Divergence divergence = session.divergences().New(DivergenceKind::kExtraCall);
    divergence.api = ShortName(call.info->name);
    divergence.what = "the recording has no further call of this kind on this thread";
    session.divergences().Diverge(thread, std::move(divergence), 0);
    return nullptr;
  }
  uint32_t at = thread.next_call;
  const RecordedCall* recorded = &plan.calls()[(*queue)[at]];
  session.stops().Enter(thread, ShortName(call.info->name), comm, 0, recorded->stack);
  if (recorded->api != call.info->id) {
    Divergence divergence = session.divergences().New(DivergenceKind::kCall);
    divergence.api = ShortName(call.info->name);
    divergence.what = "the recorded run called " + ApiText(recorded->api) + " here";
    session.divergences().Diverge(thread, std::move(divergence), recorded->stack);
    // Going on: with the next recorded call of this kind, if there is one.
    while (at < queue->size() && plan.calls()[(*queue)[at]].api != call.info->id) ++at;
    if (at == queue->size()) return nullptr;
    recorded = &plan.calls()[(*queue)[at]];
  }
  const uint64_t made = session.progress().MadeBy(thread.recorded);
  if (recorded->ordinal > made && at == thread.next_call) {
    Divergence divergence = session.divergences().New(DivergenceKind::kCall);
    divergence.api = ShortName(call.info->name);
    divergence.what = "the recorded run made " + std::to_string(recorded->ordinal - made) +
                      " more calls on this thread before this one";
    if (const std::string first = FirstNotMade(session, thread, *recorded); !first.empty())
      divergence.what += ", the first of them " + first;
    session.divergences().Diverge(thread, std::move(divergence), recorded->stack);
  }
  for (; thread.next_call <= at; ++thread.next_call) {
    session.progress().Consume(thread.recorded);
    session.made_calls().Mark((*queue)[thread.next_call]);
  }
  if (session.progress().remaining() == 0) OnAllEventsMade(session);
  return recorded;
}

const RecordedCall* PeekOrdered(const Session& session, const ThreadState& thread) {
  if (thread.recorded == kNone) return nullptr;
  const auto& queue = session.plan().threads()[thread.recorded].calls;
  return thread.next_call >= queue.size() ? nullptr
                                          : &session.plan().calls()[queue[thread.next_call]];
}

const RecordedCall* NextOfKind(Session& session, ThreadState& thread, uint32_t api) {
  if (thread.recorded == kNone) return nullptr;
  const auto& by_api = session.plan().threads()[thread.recorded].by_api;
  auto it = by_api.find(api);
  if (it == by_api.end() || it->second.empty()) return nullptr;
  uint32_t& next = thread.next_by_api[api];
  const size_t at = std::min<size_t>(next, it->second.size() - 1);
  ++next;
  return &session.plan().calls()[it->second[at]];
}

}  // namespace deja::replayer
