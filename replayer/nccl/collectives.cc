// Collectives, point-to-point and groups: matched by communicator and number, inputs compared,
// results filled in from the recording.
#include <algorithm>
#include <cstring>

#include "api/curand_table.h"
#include "api/nccl_table.h"
#include "digest/digest.h"
#include "include/compat/nccl.h"
#include "preload/calls/buffers.h"
#include "preload/cuda/device.h"
#include "replayer/core/ending.h"
#include "replayer/core/ordered.h"
#include "replayer/core/session.h"
#include "replayer/nccl/captured_calls.h"
#include "replayer/nccl/computed_results.h"
#include "replayer/nccl/generators.h"
#include "replayer/nccl/nccl_serve.h"
#include "replayer/nccl/operation_bytes.h"
#include "replayer/nccl/served_comms.h"
#include "replayer/report/live_trace.h"

namespace deja::replayer {

using api::NcclApi;
using preload::BufferUse;
using preload::Call;

namespace {

// Buffers in host memory are used when the call is made, whatever its stream is.
bool IsCaptured(const LiveOperation& operation) {
  const BufferUse& used = operation.input.empty() ? operation.output : operation.input;
  return !used.empty() && !preload::IsHostMemory(used.data) &&
         preload::TheDevice().IsCaptured(operation.stream);
}

// Compares the input bytes of a matched operation. 0: nothing to compare, 1 equal, 2 different.
uint32_t CompareInput(Session& session, ThreadState& thread, const LiveOperation& operation) {
  const BufferUse& input = operation.input;
  const auto inputs = session.plan().Tensors(session.plan().calls()[operation.index].inputs);
  if (inputs.empty() || input.empty()) return 0;
  if (operation.captured) {
    // A buffer that is both is checked as the result.
    if (input.arg != operation.output.arg) CompareAtLaunches(session, thread, operation, false);
    return 0;
  }
  if (inputs[0].hash.IsZero()) return 0;
  if (preload::IsHostMemory(input.data))
    return CompareBytes(session, thread, operation, 0,
                        {static_cast<const std::byte*>(input.data), input.bytes});
  // Only the program can let its streams go on, and perhaps not before this call returns.
  if (ServedComm::AnyHeld()) return 0;
  // Waited for, so that a divergence is found at its operation and not after it.
  const auto digest =
      preload::DigestAndWait(input.data, input.bytes, input.dtype, operation.stream);
  if (!digest) return 0;
  if (digest->hash == inputs[0].hash) {
    session.divergences().CountCompared(true);
    return 1;
  }
  // What differs is looked at.
  const auto bytes = preload::ReadAndWait(input.data, input.bytes, operation.stream);
  return bytes ? CompareBytes(session, thread, operation, 0, *bytes) : 0;
}

// Stops in gdb if it asked for this operation.
void StopIfAsked(Session& session, ThreadState& thread, const RecordedCall& recorded,
                 const BufferUse& input, const BufferUse& output, uint32_t comparison) {
  deja_replay_state_t& state = deja_replay_state;
  const auto at_operation = [&] {
    return state.stop_seq != 0 && state.stop_seq == recorded.comm_seq &&
           (state.stop_comm == 0 || state.stop_comm == recorded.comm);
  };
  const bool at_place = session.stops().Arrive(thread, recorded.enter_seq << 1,
                                               state.stop_next != 0 || at_operation());
  if (state.watched == 0) return;
  const auto inputs = session.plan().Tensors(recorded.inputs);
  const auto outputs = session.plan().Tensors(recorded.outputs);
  auto has_nan = [](const format::Tensor& t) { return t.stats.nan_count != 0; };
  DejaStopReason reason = kDejaStopNone;
  const char* why = "";
  if (state.stop_nan != 0 && std::any_of(inputs.begin(), inputs.end(), has_nan)) {
    reason = kDejaStopNan;
    why = "a NaN goes into ";
  } else if (state.stop_nan != 0 && std::any_of(outputs.begin(), outputs.end(), has_nan)) {
    reason = kDejaStopNan;
    why = "a NaN comes out of ";
  } else if (state.stop_next != 0 || at_place) {
    reason = kDejaStopOperation;
  } else if (at_operation()) {
    reason = kDejaStopOperation;
    state.stop_seq = 0;
  }
  if (reason == kDejaStopNone) return;
  std::vector<Stops::ShownTensor> tensors;
  if (!inputs.empty()) tensors.push_back({"send", 1, &inputs[0], input.data, comparison});
  if (!outputs.empty()) tensors.push_back({"recv", 2, &outputs[0], output.data, 0});
  session.stops().Stop(thread, reason, why + OperationText(recorded), tensors, recorded.stack);
}

// Puts the recorded result of a call into `output`: at once, or, where that is a device's memory,
// in the order of the call's stream.
Status ServeOutput(Session& session, const LiveOperation& operation) {
  const uint32_t index = operation.index;
  const BufferUse& output = operation.output;
  auto* data = static_cast<std::byte*>(const_cast<void*>(output.data));
  if (preload::IsHostMemory(data))
    return session.payloads().ReadOutput(index, 0, {data, output.bytes});
  struct Context {
    Session& session;
    uint32_t index;
    Status status;
  } context{session, index, {}};
  const preload::DeviceAnswer answer = preload::TheDevice().Write(
      data, output.bytes, operation.stream,
      [](std::span<std::byte> bytes, void* opaque) {
        auto& c = *static_cast<Context*>(opaque);
        c.status = c.session.payloads().ReadOutput(c.index, 0, bytes);
        return static_cast<bool>(c.status);
      },
      &context);
  if (answer == preload::DeviceAnswer::kTaken || !context.status) return context.status;
  return Fail(ErrorCode::kIo, answer == preload::DeviceAnswer::kNoMemory
                                  ? "there is no pinned memory to bring it to the device"
                                  : "the CUDA driver did not take it");
}

// The call returned, and its work on the stream was never done: the recorded run ended before, or
// hung there. (Level order has no results to tell by.)
bool StoodStill(const Session& session, const LiveOperation& operation) {
  const RecordedCall& recorded = session.plan().calls()[operation.index];
  return !recorded.has_results && recorded.left &&
         (recorded.result == ncclSuccess || recorded.result == ncclInProgress) &&
         session.plan().level != Level::kOrder && !api::IsCurand(recorded.api);
}

// Puts the recorded results into the program's buffers.
void Fill(Session& session, ThreadState& thread, const LiveOperation& operation) {
  const RecordedCall& recorded = session.plan().calls()[operation.index];
  const BufferUse& output = operation.output;
  if (!operation.captured && (recorded.aborted || StoodStill(session, operation)))
    return HoldStreamAt(operation);
  if (LiveTrace* live = session.live_trace(); live != nullptr && recorded.has_results)
    live->Results(recorded);
  if (operation.comm->generator() != nullptr && recorded.result == ncclSuccess && !output.empty() &&
      Generate(session, thread, operation))
    return;
  if (operation.captured && !output.empty()) return ServeAtLaunches(session, thread, operation);
  if (!recorded.has_results) return;
  const auto outputs = session.plan().Tensors(recorded.outputs);
  if (outputs.empty() || output.empty()) return;
  const uint64_t bytes = outputs[0].count * digest::ElementSize(outputs[0].dtype);
  if (bytes != output.bytes) return;  // has been reported; this is --on-divergence=warn
  const Status served = ServeOutput(session, operation);
  if (!served) FailResult(session, thread, operation, 0, outputs[0], served.error());
}

// It has a result that no recording has to be asked for.
bool IsComputed(const Session& session, const LiveOperation& operation) {
  if (operation.comm->computed() == nullptr) return false;
  const RecordedCall& recorded = session.plan().calls()[operation.index];
  return !recorded.aborted && (recorded.result == ncclSuccess || recorded.result == ncclInProgress);
}

// The results of a group's operations, or of one alone. `done`: the recorded group did not fail as
// a whole, after its calls had been accepted.
void FillAll(Session& session, ThreadState& thread, std::span<const LiveOperation> group,
             bool done) {
  std::vector<const LiveOperation*> computed;
  for (const LiveOperation& operation : group) {
    if (!IsComputed(session, operation))
      Fill(session, thread, operation);
    else if (done)
      computed.push_back(&operation);
  }
  if (!computed.empty()) session.Find<ComputedResults>()->Compute(session, thread, computed);
}

// The rank ended in the operation, or in its group; others have the results, for which they need
// what this one gives.
bool IsGiven(const Session& session, const LiveOperation& operation) {
  return operation.comm->computed() != nullptr && !operation.captured &&
         session.Find<ComputedResults>()->OthersHaveResult(
             *operation.comm, session.plan().calls()[operation.index].comm_seq);
}

void GiveAll(Session& session, ThreadState& thread, std::span<const LiveOperation> group) {
  std::vector<const LiveOperation*> given;
  for (const LiveOperation& operation : group)
    if (IsGiven(session, operation)) given.push_back(&operation);
  if (!given.empty()) session.Find<ComputedResults>()->Compute(session, thread, given);
}

// The operation in the replay's own trace, if it makes one. What comes after the recording's end is
// not in it.
class LiveCall {
 public:
  LiveCall(const Session& session, ThreadState& thread, const LiveOperation& operation,
           uint64_t seq)
      : trace_(session.live_trace()) {
    if (trace_ != nullptr && operation.index == kNone &&
        session.progress().Classify(thread) == Progress::Missing::kEndOfRecording)
      trace_ = nullptr;
    if (trace_ != nullptr)
      seq_ =
          trace_->Enter({operation.index, operation.call, operation.comm->number(), operation.input,
                         operation.output, operation.stream, operation.captured},
                        seq, NcclOf(thread).depth);
  }
  void Leave(const RecordedCall& recorded) const {
    if (trace_ != nullptr) trace_->Leave(seq_, recorded.result, recorded);
  }

 private:
  LiveTrace* trace_;
  uint64_t seq_ = 0;  // of the event
};

// An operation that the recording does not have. Does not return unless the replay goes on.
void ServeMissing(Session& session, ThreadState& thread, Call& call, const ServedComm* comm,
                  uint64_t seq) {
  if (session.progress().Classify(thread) == Progress::Missing::kEndOfRecording)
    Park(session, thread, ShortName(call.info->name), comm == nullptr ? 0 : comm->number(), seq,
         nullptr);
  const bool other_calls_left = session.progress().RemainingOf(thread.recorded) != 0;
  Divergence divergence = session.divergences().New(other_calls_left ? DivergenceKind::kCall
                                                                     : DivergenceKind::kExtraCall);
  Locate(divergence, call, comm, seq);
  divergence.what = "the recording has no such operation";
  if (comm != nullptr) {
    const uint64_t last = session.plan().LastOperation(comm->number());
    divergence.what += ": the last one on this communicator is " +
                       (last == 0 ? std::string("none") : "#" + std::to_string(last));
  }
  session.divergences().Diverge(thread, std::move(divergence), 0);
  call.result = ncclSuccess;
}

}  // namespace

void HoldStreamAt(const LiveOperation& operation) {
  const BufferUse& used = operation.tells_end ? operation.input : operation.output;
  if (!used.empty() && !preload::IsHostMemory(used.data))
    operation.comm->HoldStream(operation.stream);
}

uint32_t ServeOperation(Session& session, ThreadState& thread, Call& call) {
  ServedComm* comm = ServedComm::From(call.ArgOf(api::Role::kComm));
  if (comm == nullptr) {
    const RecordedCall* recorded = NextOfKind(session, thread, call.info->id);
    call.result = recorded == nullptr ? uint64_t{ncclInvalidArgument}
                                      : static_cast<uint64_t>(recorded->result);
    return kNone;
  }
  session.progress().CountActivity();
  const uint64_t seq = comm->NextOperation();
  const uint32_t index = session.plan().FindOperation(comm->number(), seq);
  session.stops().Enter(thread, ShortName(call.info->name), comm->number(), seq,
                        index == kNone ? 0 : session.plan().calls()[index].stack);
  const int nranks = static_cast<int>(comm->nranks());
  const int rank = static_cast<int>(comm->rank());
  LiveOperation operation{index, call, comm,
                          preload::InputBuffer(*call.info, call.args, nranks, rank),
                          preload::OutputBuffer(*call.info, call.args, nranks, rank)};
  // A call that does not name its stream is a generator's.
  operation.stream =
      call.info->Find(api::Role::kStream) < 0 ? comm->stream() : call.ArgOf(api::Role::kStream);
  operation.captured = IsCaptured(operation);
  comm->SetLatestHasOutput(!operation.output.empty());
  const LiveCall live(session, thread, operation, seq);
  if (index == kNone) {
    ServeMissing(session, thread, call, comm, seq);
    return kNone;
  }
  const RecordedCall& recorded = session.plan().calls()[index];
  operation.tells_end = recorded.tells_end;
  __atomic_fetch_add(&deja_replay_state.operations, 1, __ATOMIC_RELAXED);
  if (recorded.api != call.info->id) {
    Divergence divergence = session.divergences().New(DivergenceKind::kCall);
    Locate(divergence, call, comm, seq);
    divergence.what = "the recorded run called " + ApiText(recorded.api) + " here";
    session.divergences().Diverge(thread, std::move(divergence), recorded.stack);
  } else {
    const std::string differs = CompareArguments(session.plan(), recorded, call);
    if (!differs.empty()) {
      Divergence divergence = session.divergences().New(DivergenceKind::kArguments);
      Locate(divergence, call, comm, seq);
      divergence.what = differs;
      session.divergences().Diverge(thread, std::move(divergence), recorded.stack);
    }
  }
  uint32_t comparison = 0;
  const bool compares_later = recorded.reads_at_end && NcclOf(thread).depth > 0;
  if (recorded.api == call.info->id && !compares_later)
    comparison = CompareInput(session, thread, operation);
  StopIfAsked(session, thread, recorded, operation.input, operation.output, comparison);
  const SessionOptions& options = session.options();
  if (options.until_comm == comm->number() && options.until_seq == seq)
    session.EndAsAsked(OperationText(recorded));
  const bool gives = !recorded.left && NcclOf(thread).depth == 0 && IsGiven(session, operation);
  {
    const Progress::Needed needed(session.progress(), gives);
    session.progress().Consume(recorded.thread);
    if (session.progress().remaining() == 0) OnAllEventsMade(session);
    if (gives) GiveAll(session, thread, {&operation, 1});
  }
  if (!recorded.left)
    Park(session, thread, ShortName(call.info->name), comm->number(), seq, &recorded);
  if (recorded.waits_for != kNone) session.made_calls().Await(recorded.waits_for);
  if (NcclOf(thread).depth > 0 && !api::IsCurand(call.info->id))  // groups are NCCL's
    NcclOf(thread).pending.push_back(operation);
  else
    FillAll(session, thread, {&operation, 1}, true);
  call.result = static_cast<uint64_t>(recorded.result);
  live.Leave(recorded);
  return index;
}

namespace {

void EndGroup(Session& session, ThreadState& thread, const RecordedCall* recorded) {
  const bool done = recorded == nullptr || recorded->result == int64_t{ncclSuccess} ||
                    recorded->result == ncclInProgress;
  for (const LiveOperation& operation : NcclOf(thread).pending) {
    const RecordedCall& call = session.plan().calls()[operation.index];
    if (call.reads_at_end && call.api == operation.call.info->id)
      CompareInput(session, thread, operation);
  }
  FillAll(session, thread, NcclOf(thread).pending, done);
  NcclOf(thread).pending.clear();
  if (recorded == nullptr) return;
  // Communicators whose calls were inside the group: their handles are there when it ends.
  for (const RecordedComm& created : session.plan().Created(recorded->created)) {
    auto match = std::find_if(NcclOf(thread).pending_comms.begin(),
                              NcclOf(thread).pending_comms.end(), [&](const PendingComm& pending) {
                                return pending.parent == created.parent &&
                                       (pending.rank < 0 || pending.rank == created.rank);
                              });
    if (match == NcclOf(thread).pending_comms.end()) continue;
    const uint64_t handle = session.Find<ServedComms>()->New(thread, created, *recorded);
    std::memcpy(reinterpret_cast<void*>(match->out), &handle, sizeof handle);
    NcclOf(thread).pending_comms.erase(match);
  }
  NcclOf(thread).pending_comms.clear();
  session.Find<ServedComms>()->Meet(thread, *recorded);
}

}  // namespace

void ServeGroup(Session& session, ThreadState& thread, Call& call) {
  const auto api = static_cast<NcclApi>(call.info->id);
  const RecordedCall* recorded = nullptr;
  if (thread.recorded != kNone) {
    const auto& by_api = session.plan().threads()[thread.recorded].by_api;
    auto it = by_api.find(call.info->id);
    const uint32_t next = thread.next_by_api[call.info->id]++;
    if (it != by_api.end() && next < it->second.size())
      recorded = &session.plan().calls()[it->second[next]];
  }
  session.progress().CountActivity();
  if (api == NcclApi::ncclGroupStart) {
    ++NcclOf(thread).depth;
    call.result =
        recorded == nullptr ? uint64_t{ncclSuccess} : static_cast<uint64_t>(recorded->result);
    return;
  }
  if (api == NcclApi::ncclGroupSimulateEnd) {
    // Ends the group, and nothing of it happens.
    if (recorded != nullptr) WriteOuts(session, *recorded, call);
    if (NcclOf(thread).depth > 0 && --NcclOf(thread).depth == 0) NcclOf(thread).pending.clear();
    call.result =
        recorded == nullptr ? uint64_t{ncclSuccess} : static_cast<uint64_t>(recorded->result);
    return;
  }
  const bool outermost = NcclOf(thread).depth <= 1;
  if (NcclOf(thread).depth > 0) --NcclOf(thread).depth;
  // The recording stops inside this group.
  if (recorded == nullptr && !NcclOf(thread).pending.empty() &&
      session.progress().Classify(thread) == Progress::Missing::kEndOfRecording)
    Park(session, thread, "GroupEnd", 0, 0, nullptr);
  if (recorded != nullptr && !recorded->left) {
    if (outermost) GiveAll(session, thread, NcclOf(thread).pending);
    Park(session, thread, "GroupEnd", 0, 0, recorded);
  }
  if (outermost) EndGroup(session, thread, recorded);
  call.result =
      recorded == nullptr ? uint64_t{ncclSuccess} : static_cast<uint64_t>(recorded->result);
}

}  // namespace deja::replayer
