// Operations that are computed among the replayed ranks. Their buffers are copied to host memory,
// where the loopback library sums them in the order of NCCL's ring, and back.
#include <algorithm>
#include <cstring>

#include "api/nccl_table.h"
#include "digest/digest.h"
#include "include/compat/nccl.h"
#include "preload/cuda/device.h"
#include "replayer/core/ending.h"
#include "replayer/core/ordered.h"
#include "replayer/core/session.h"
#include "replayer/fold/fold.h"
#include "replayer/fold/launched_groups.h"
#include "replayer/fold/mirror.h"
#include "replayer/nccl/nccl_serve.h"
#include "replayer/nccl/operation_bytes.h"
#include "replayer/process/end_process.h"
#include "replayer/report/live_trace.h"
#include "replayer/turns/turns.h"

namespace deja::replayer {

using api::Role;
using preload::BufferUse;

namespace {

Fold& FoldOf(const Session& session) {
  return static_cast<Fold&>(*session.Find<ComputedResults>());
}

struct Staged {
  const LiveOperation* live = nullptr;
  Fold::Operation call;
  bool makes_operator = false;
};

[[noreturn]] void FailComputing(Session& session, ThreadState& thread,
                                const LiveOperation& operation, const std::string& why) {
  const RecordedCall& recorded = session.plan().calls()[operation.index];
  FailReplay(session, thread, "computing " + OperationText(recorded) + ": " + why, recorded.stack);
}

// What is read goes into the mirror, and the call gets the mirror's addresses.
void StageBuffers(Session& session, ThreadState& thread, Mirror& mirror, Staged& staged) {
  const LiveOperation& live = *staged.live;
  const BufferUse& input = live.input;
  for (const BufferUse* use : {&input, &live.output})
    if (!use->empty())
      staged.call.args[use->arg] = reinterpret_cast<uint64_t>(mirror.At(use->data));
  if (input.empty() || preload::IsHostMemory(input.data)) return;
  const auto bytes = preload::ReadAndWait(input.data, input.bytes, live.stream);
  if (!bytes)
    FailComputing(session, thread, live,
                  "its input (" + std::to_string(input.bytes) +
                      " bytes of the device) could not be read: the driver refused, or there is no "
                      "pinned memory for it");
  std::memcpy(mirror.At(input.data), bytes->data(), bytes->size());
}

// An operator of the program's own is one of the library's for the time of the call.
void StageOperator(Session& session, ThreadState& thread, Staged& staged) {
  const LiveOperation& live = *staged.live;
  const int at = live.call.info->Find(Role::kRedOp);
  if (at < 0 || live.call.args[at] < ncclNumOps) return;
  auto found = FoldOf(session).FindOperator(*live.comm, live.call.args[at]);
  if (!found)
    FailComputing(session, thread, live, "its operator is none that the program has made");
  if (found->scalar.empty()) {
    const auto* scalar = reinterpret_cast<const std::byte*>(found->address);
    const uint64_t size = digest::ElementSize(found->dtype);
    if (preload::IsHostMemory(scalar)) {
      found->scalar.assign(scalar, scalar + size);
    } else if (auto bytes = preload::ReadAndWait(scalar, size, live.stream)) {
      found->scalar = std::move(*bytes);
    } else {
      FailComputing(session, thread, live, "its operator's scalar could not be read");
    }
  }
  auto made = FoldOf(session).MakeOperator(live.comm->computed(), found->dtype, found->scalar);
  if (!made) FailComputing(session, thread, live, made.error().message);
  staged.call.args[at] = *made;
  staged.makes_operator = true;
}

Staged Stage(Session& session, ThreadState& thread, Mirror& mirror, const LiveOperation& live) {
  Staged staged;
  staged.live = &live;
  staged.call.api = live.call.info->id;
  std::copy(std::begin(live.call.args), std::end(live.call.args), staged.call.args.begin());
  staged.call.args[live.call.info->Find(Role::kComm)] =
      reinterpret_cast<uint64_t>(live.comm->computed());
  StageBuffers(session, thread, mirror, staged);
  StageOperator(session, thread, staged);
  return staged;
}

// The result, in the order of the call's stream.
void BringBack(Session& session, ThreadState& thread, const LiveOperation& live,
               std::span<const std::byte> result) {
  if (preload::IsHostMemory(live.output.data)) return;
  auto make = [](std::span<std::byte> bytes, void* context) {
    const auto& from = *static_cast<std::span<const std::byte>*>(context);
    std::memcpy(bytes.data(), from.data(), bytes.size());
    return true;
  };
  const preload::DeviceAnswer answer = preload::TheDevice().Write(
      const_cast<void*>(live.output.data), live.output.bytes, live.stream, make, &result);
  if (answer != preload::DeviceAnswer::kTaken)
    FailComputing(session, thread, live,
                  answer == preload::DeviceAnswer::kNoMemory
                      ? "there is no pinned memory to bring its result to the device"
                      : "the CUDA driver did not take its result");
}

// Some rank has a result of it.
bool IsExpected(const Session& session, std::span<const Staged> group) {
  return std::any_of(group.begin(), group.end(), [&](const Staged& staged) {
    const RecordedCall& recorded = session.plan().calls()[staged.live->index];
    return recorded.has_results ||
           FoldOf(session).OthersHaveResult(*staged.live->comm, recorded.comm_seq);
  });
}

// A rank that the group needs is gone. Where the recorded operation had no result either (its
// ranks never came), the replay goes on as the recorded program did.
void GiveUp(Session& session, ThreadState& thread, std::span<const Staged> group,
            const Error& error) {
  const Staged* first = nullptr;
  for (const Staged& staged : group) {
    const RecordedCall& recorded = session.plan().calls()[staged.live->index];
    if (recorded.has_results || (recorded.left && session.plan().level == Level::kOrder))
      first = &staged;
  }
  if (first == nullptr) {
    for (const Staged& staged : group) HoldStreamAt(*staged.live);
    return;
  }
  const RecordedCall& recorded = session.plan().calls()[first->live->index];
  if (error.code != ErrorCode::kNotFound)
    FailComputing(session, thread, *first->live, error.message);
  const std::string message = "stopped at " + OperationText(recorded) +
                              ", which needs a rank whose replay has ended: " + error.message;
  session.report().Write(
      StoppedLine{.message = message, .counters = session.divergences().CountersNow()});
  EndProcess(4);
}

}  // namespace

void Fold::Compute(Session& session, ThreadState& thread,
                   std::span<const LiveOperation* const> group) {
  if (group.front()->captured) return ComputeAtLaunches(*this, session, thread, group);
  Fold& fold = *this;
  std::vector<Staged> staged;
  staged.reserve(group.size());
  std::vector<Fold::Operation> calls;
  calls.reserve(group.size());
  Mirror mirror;
  for (const LiveOperation* live : group) {
    mirror.Add(live->input);
    mirror.Add(live->output);
  }
  mirror.Make();
  for (const LiveOperation* live : group) {
    staged.push_back(Stage(session, thread, mirror, *live));
    calls.push_back(staged.back().call);
  }
  const Status ran = [&] {
    const Progress::Needed needed(session.progress(), IsExpected(session, staged));
    const Turns::Rest rest;
    return fold.Run(calls);
  }();
  for (const Staged& one : staged)
    if (one.makes_operator)
      fold.DropOperator(one.live->comm->computed(),
                        one.call.args[one.live->call.info->Find(Role::kRedOp)]);
  if (!ran) return GiveUp(session, thread, staged, ran.error());
  session.divergences().CountComputed(group.size());
  LiveTrace* trace = session.live_trace();
  for (const Staged& one : staged) {
    const RecordedCall& recorded = session.plan().calls()[one.live->index];
    if (trace != nullptr && recorded.has_results) trace->Results(recorded);
    const BufferUse& output = one.live->output;
    if (output.empty()) continue;
    const std::span<const std::byte> result{mirror.At(output.data), output.bytes};
    BringBack(session, thread, *one.live, result);
    CompareResult(session, thread, *one.live, 0, result);
  }
}

}  // namespace deja::replayer
