#include "replayer/nccl/captured_calls.h"

#include "digest/digest.h"
#include "preload/cuda/device.h"
#include "replayer/core/ending.h"
#include "replayer/core/ordered.h"
#include "replayer/nccl/nccl_serve.h"
#include "replayer/nccl/served_comms.h"

namespace deja::replayer {
namespace {

// One direction of a captured operation. A graph can be launched as long as the process lives: it
// is never freed.
struct Captured {
  Session& session;
  ThreadState& thread;  // which captured it
  LiveOperation operation;
  bool result;            // what it produces, and not what it reads
  uint64_t launches = 0;  // of this graph so far; they take turns
};

void BeyondRecording(const Captured& captured, uint64_t launch) {
  ReportExtraLaunch(captured.session, captured.thread, captured.operation, launch);
}

bool WasBegun(const Captured& captured, uint64_t launch) {
  if (captured.operation.input.arg == captured.operation.output.arg) return false;
  const auto read = captured.session.plan().ReadAt(captured.operation.index, launch);
  return read && !read->hash.IsZero();
}

bool BringLaunch(std::span<std::byte> bytes, void* context) {
  auto& captured = *static_cast<Captured*>(context);
  Session& session = captured.session;
  const LiveOperation& operation = captured.operation;
  const uint64_t launch = captured.launches++;
  session.progress().CountLaunch(operation.index, launch, true);
  const auto produced = session.plan().ProducedAt(operation.index, launch);
  // Cut short, or it has read its input and never reached its end. What such a launch leaves is not
  // known, and later work waits.
  const bool aborted =
      produced && produced->payload == static_cast<uint32_t>(format::PayloadState::kAborted);
  if (aborted || (!produced && WasBegun(captured, launch))) {
    operation.comm->AwaitLetGo();
    return false;
  }
  if (!produced) {
    BeyondRecording(captured, launch);
    return false;
  }
  if (produced->count * digest::ElementSize(produced->dtype) != bytes.size())
    return false;  // has been reported; this is --on-divergence=warn
  const Status served = launch == 0 ? session.payloads().ReadOutput(operation.index, 0, bytes)
                                    : session.payloads().ReadInto(produced->hash, bytes);
  if (!served) FailResult(session, captured.thread, operation, launch, *produced, served.error());
  return true;
}

void CompareLaunch(preload::DeviceAnswer answer, std::span<const std::byte> bytes, void* context) {
  auto& captured = *static_cast<Captured*>(context);
  const uint64_t launch = captured.launches++;
  captured.session.progress().CountLaunch(captured.operation.index, launch, captured.result);
  if (captured.result && !captured.session.plan().ProducedAt(captured.operation.index, launch))
    return BeyondRecording(captured, launch);
  if (answer != preload::DeviceAnswer::kTaken) return;
  if (captured.result)
    CompareResult(captured.session, captured.thread, captured.operation, launch, bytes);
  else
    CompareBytes(captured.session, captured.thread, captured.operation, launch, bytes);
}

}  // namespace

void ReportExtraLaunch(Session& session, ThreadState& thread, const LiveOperation& operation,
                       uint64_t launch) {
  const RecordedCall& recorded = session.plan().calls()[operation.index];
  // Nothing says how it ended: this is as far as the recording goes.
  if (!session.plan().end().HappensByItself(session.plan().pid))
    Park(session, thread, ShortName(operation.call.info->name), operation.comm->number(),
         recorded.comm_seq, nullptr);
  Divergence divergence = session.divergences().New(DivergenceKind::kExtraCall);
  Locate(divergence, operation.call, operation.comm, recorded.comm_seq);
  SetLaunch(divergence, launch);
  divergence.what = "the recorded run launched its graph " + std::to_string(launch) + " times";
  session.divergences().Diverge(thread, std::move(divergence), recorded.stack);
}

void CompareAtLaunches(Session& session, ThreadState& thread, const LiveOperation& operation,
                       bool result) {
  const preload::BufferUse& used = result ? operation.output : operation.input;
  // What cannot be compared here shows in what comes of it.
  auto* captured = new Captured{session, thread, operation, result};
  (void)preload::TheDevice().ReadAtLaunches(used.data, used.bytes, operation.stream,
                                            operation.comm->number(), &CompareLaunch, captured,
                                            preload::LaunchUse::kInNode);
}

void ServeAtLaunches(Session& session, ThreadState& thread, const LiveOperation& operation) {
  const preload::BufferUse& output = operation.output;
  auto* captured = new Captured{session, thread, operation, true};
  const preload::DeviceAnswer answer = preload::TheDevice().WriteAtLaunches(
      const_cast<void*>(output.data), output.bytes, operation.stream, operation.comm->number(),
      &BringLaunch, captured);
  if (answer == preload::DeviceAnswer::kTaken) return;
  const RecordedCall& recorded = session.plan().calls()[operation.index];
  const std::string graph = answer == preload::DeviceAnswer::kInBody
                                ? "it is captured into the body of a conditional node of a CUDA "
                                  "graph, which"
                                : "the CUDA graph that it is captured into";
  FailReplay(session, thread,
             "the results of " + OperationText(recorded) + " cannot be served: " + graph +
                 " cannot have the nodes that bring them",
             recorded.stack);
}

}  // namespace deja::replayer
