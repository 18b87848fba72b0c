// Operations that are computed among the replayed ranks: their buffers come to host memory, where
// the loopback library sums them in the order of NCCL's ring, and go back.
#include <algorithm>
#include <cstring>
#include <memory>

#include "include/compat/nccl.h"
#include "preload/api/nccl_table.h"
#include "preload/device.h"
#include "preload/digest.h"
#include "replayer/ending.h"
#include "replayer/fold.h"
#include "replayer/live_trace.h"
#include "replayer/operation_bytes.h"
#include "replayer/ordered.h"
#include "replayer/session.h"

namespace deja::replayer {

using preload::BufferUse;
using preload::Role;

namespace {

bool IsHostMemory(const void* data) {
  return preload::TheDevice().KindOf(data) == preload::MemoryKind::kHost;
}

// One operation, with its buffers where the processor can reach them.
struct Staged {
  const LiveOperation* live = nullptr;
  Fold::Operation call;
  std::vector<std::byte> input;   // of a device
  std::vector<std::byte> output;  // for a device
  bool makes_operator = false;

  [[nodiscard]] std::span<const std::byte> Result() const {
    const BufferUse& use = live->output;
    if (!output.empty()) return output;
    return {static_cast<const std::byte*>(use.data), use.bytes};
  }
};

[[noreturn]] void FailComputing(Session& session, ThreadState& thread,
                                const LiveOperation& operation, const std::string& why) {
  const RecordedCall& recorded = session.plan().calls()[operation.index];
  FailReplay(session, thread, OperationText(recorded) + " cannot be computed: " + why,
             recorded.stack);
}

// What is read goes to host memory, if it is not there; so does room for what is written.
void StageBuffers(Session& session, ThreadState& thread, Staged& staged) {
  const LiveOperation& live = *staged.live;
  const BufferUse& input = live.input;
  const BufferUse& output = live.output;
  if (!output.empty() && !IsHostMemory(output.data)) {
    staged.output.resize(output.bytes);
    staged.call.args[output.arg] = reinterpret_cast<uint64_t>(staged.output.data());
  }
  if (input.empty() || IsHostMemory(input.data)) return;
  auto bytes = preload::ReadAndWait(input.data, input.bytes, live.stream);
  if (!bytes)
    FailComputing(session, thread, live,
                  "its input (" + std::to_string(input.bytes) +
                      " bytes of the device) could not be read: the driver refused, or there is no "
                      "pinned memory for it");
  if (input.arg == output.arg && !staged.output.empty()) {
    std::memcpy(staged.output.data(), bytes->data(),
                std::min(bytes->size(), staged.output.size()));
    return;
  }
  staged.input = std::move(*bytes);
  staged.call.args[input.arg] = reinterpret_cast<uint64_t>(staged.input.data());
}

// An operator of the program's own is one of the library's for the time of the call.
void StageOperator(Session& session, ThreadState& thread, Staged& staged) {
  const LiveOperation& live = *staged.live;
  const int at = live.call.info->Find(Role::kRedOp);
  if (at < 0 || live.call.args[at] < ncclNumOps) return;
  auto found = session.fold()->FindOperator(*live.comm, live.call.args[at]);
  if (!found) FailComputing(session, thread, live, "its operator is none that the program has made");
  if (found->scalar.empty()) {
    const auto* scalar = reinterpret_cast<const std::byte*>(found->address);
    const uint64_t size = preload::ElementSize(found->dtype);
    if (IsHostMemory(scalar)) {
      found->scalar.assign(scalar, scalar + size);
    } else if (auto bytes = preload::ReadAndWait(scalar, size, live.stream)) {
      found->scalar = std::move(*bytes);
    } else {
      FailComputing(session, thread, live, "its operator's scalar could not be read");
    }
  }
  auto made = session.fold()->MakeOperator(live.comm->computed(), found->dtype, found->scalar);
  if (!made) FailComputing(session, thread, live, made.error().message);
  staged.call.args[at] = *made;
  staged.makes_operator = true;
}

Staged Stage(Session& session, ThreadState& thread, const LiveOperation& live) {
  if (live.captured)
    FailComputing(session, thread, live,
                  "it is captured into a CUDA graph. Record the job with --level full: then its "
                  "results are served");
  Staged staged;
  staged.live = &live;
  staged.call.api = live.call.info->id;
  std::copy(std::begin(live.call.args), std::end(live.call.args), staged.call.args.begin());
  staged.call.args[live.call.info->Find(Role::kComm)] =
      reinterpret_cast<uint64_t>(live.comm->computed());
  StageBuffers(session, thread, staged);
  StageOperator(session, thread, staged);
  return staged;
}

// The result, in the order of the call's stream.
void BringBack(Session& session, ThreadState& thread, const Staged& staged) {
  if (staged.output.empty()) return;
  const BufferUse& output = staged.live->output;
  auto make = [](std::span<std::byte> bytes, void* context) {
    const auto& from = *static_cast<const std::vector<std::byte>*>(context);
    std::memcpy(bytes.data(), from.data(), std::min(bytes.size(), from.size()));
    return true;
  };
  const preload::DeviceAnswer answer = preload::TheDevice().Write(
      const_cast<void*>(output.data), output.bytes, staged.live->stream, make,
      const_cast<std::vector<std::byte>*>(&staged.output));
  if (answer != preload::DeviceAnswer::kTaken)
    FailComputing(session, thread, *staged.live,
                  answer == preload::DeviceAnswer::kNoMemory
                      ? "there is no pinned memory to bring its result to the device"
                      : "the CUDA driver did not take its result");
}

// A rank that the group needs is gone. Where the recorded operation had no result either (its
// ranks never came), the replay goes on as the recorded program did.
void GiveUp(Session& session, ThreadState& thread, std::span<const Staged> group,
            const Error& error) {
  const Staged* first = nullptr;
  for (const Staged& staged : group)
    if (session.plan().calls()[staged.live->index].has_results ||
        session.plan().level == Level::kOrder)
      first = &staged;
  if (first == nullptr) return;
  const RecordedCall& recorded = session.plan().calls()[first->live->index];
  if (error.code != ErrorCode::kNotFound)
    FailComputing(session, thread, *first->live, error.message);
  JsonLine line("stopped");
  line.Add("message", "stopped at " + OperationText(recorded) +
                          ", which needs a rank whose replay has ended: " + error.message);
  session.WriteCounters(line);
  session.report().Write(line);
  Session::EndProcess(4);
}

}  // namespace

void Compute(Session& session, ThreadState& thread, std::span<const LiveOperation* const> group) {
  Fold& fold = *session.fold();
  std::vector<Staged> staged;
  staged.reserve(group.size());
  std::vector<Fold::Operation> calls;
  calls.reserve(group.size());
  for (const LiveOperation* live : group) {
    staged.push_back(Stage(session, thread, *live));
    calls.push_back(staged.back().call);
  }
  const Status ran = fold.Run(calls);
  for (const Staged& one : staged)
    if (one.makes_operator)
      fold.DropOperator(one.live->comm->computed(),
                        one.call.args[one.live->call.info->Find(Role::kRedOp)]);
  if (!ran) return GiveUp(session, thread, staged, ran.error());
  session.CountComputed(group.size());
  LiveTrace* trace = session.live_trace();
  for (const Staged& one : staged) {
    const RecordedCall& recorded = session.plan().calls()[one.live->index];
    if (trace != nullptr && recorded.has_results) trace->Results(recorded);
    if (one.live->output.empty()) continue;
    BringBack(session, thread, one);
    CompareResult(session, thread, *one.live, 0, one.Result());
  }
}

}  // namespace deja::replayer
