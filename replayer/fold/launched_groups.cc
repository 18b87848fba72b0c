#include "replayer/fold/launched_groups.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "digest/digest.h"
#include "include/compat/nccl.h"
#include "preload/cuda/device.h"
#include "replayer/core/ending.h"
#include "replayer/core/session.h"
#include "replayer/fold/mirror.h"
#include "replayer/nccl/captured_calls.h"
#include "replayer/nccl/operation_bytes.h"
#include "replayer/process/end_process.h"

namespace deja::replayer {
namespace {

using api::Role;
using preload::DeviceAnswer;

struct LaunchedGroup;

// One direction of an operation: a node.
struct Part {
  LaunchedGroup* group;
  size_t operation;
};

// A graph can be launched as long as the process lives: it is never freed.
struct LaunchedGroup {
  Fold& fold;
  Session& session;
  ThreadState& thread;
  std::vector<LiveOperation> operations;
  std::vector<Fold::Operation> calls;
  Mirror mirror;
  std::vector<Part> reads;
  std::vector<Part> writes;
  uint64_t launch = 0;  // of this graph; they take turns
  size_t read = 0;      // in this launch
  size_t written = 0;
  bool is_computed = false;
};

[[noreturn]] void FailLaunch(const LaunchedGroup& group, size_t operation, const std::string& why) {
  const LiveOperation& live = group.operations[operation];
  const RecordedCall& recorded = group.session.plan().calls()[live.index];
  FailReplay(group.session, group.thread, "computing " + OperationText(recorded) + ": " + why,
             recorded.stack);
}

// True if the recording has this launch of an operation. At level order it has none of any.
bool IsRecorded(const LaunchedGroup& group, size_t operation) {
  const ReplayPlan& plan = group.session.plan();
  return plan.level == Level::kOrder ||
         plan.ProducedAt(group.operations[operation].index, group.launch).has_value();
}

[[noreturn]] void StopAt(const LaunchedGroup& group, const Error& error) {
  Session& session = group.session;
  const std::string launch = "launch " + std::to_string(group.launch + 1);
  if (error.code != ErrorCode::kNotFound) FailLaunch(group, 0, launch + ": " + error.message);
  const RecordedCall& recorded = session.plan().calls()[group.operations[0].index];
  const std::string message = "stopped at " + launch + " of " + OperationText(recorded) +
                              ", which needs a rank whose replay has ended: " + error.message;
  session.report().Write(
      StoppedLine{.message = message, .counters = session.divergences().CountersNow()});
  EndProcess(4);
}

// With the other ranks, all calls of the group.
void ComputeLaunch(LaunchedGroup& group) {
  for (const Part& part : group.writes)
    if (!IsRecorded(group, part.operation))
      ReportExtraLaunch(group.session, group.thread, group.operations[part.operation],
                        group.launch);
  const Status ran = [&] {
    const Progress::Needed needed(group.session.progress(), true);
    return group.fold.Run(group.calls);
  }();
  if (!ran) StopAt(group, ran.error());
  group.session.divergences().CountComputed(group.calls.size());
  group.is_computed = true;
}

void EndLaunch(LaunchedGroup& group) {
  group.read = 0;
  group.written = 0;
  group.is_computed = false;
  ++group.launch;
}

void TakeInput(DeviceAnswer answer, std::span<const std::byte> bytes, void* context) {
  const Part& part = *static_cast<Part*>(context);
  LaunchedGroup& group = *part.group;
  if (answer != DeviceAnswer::kTaken)
    FailLaunch(group, part.operation, "what a launch of its graph reads could not be had");
  std::memcpy(group.mirror.At(group.operations[part.operation].input.data), bytes.data(),
              bytes.size());
  if (++group.read < group.reads.size()) return;
  ComputeLaunch(group);
  if (group.writes.empty()) EndLaunch(group);
}

bool BringResult(std::span<std::byte> bytes, void* context) {
  const Part& part = *static_cast<Part*>(context);
  LaunchedGroup& group = *part.group;
  if (!group.is_computed) ComputeLaunch(group);  // nothing is read
  const LiveOperation& live = group.operations[part.operation];
  const std::span<const std::byte> result{group.mirror.At(live.output.data), bytes.size()};
  std::memcpy(bytes.data(), result.data(), result.size());
  group.session.progress().CountLaunch(live.index, group.launch, true);
  if (IsRecorded(group, part.operation) && group.session.plan().level != Level::kOrder)
    CompareResult(group.session, group.thread, live, group.launch, result);
  if (++group.written == group.writes.size()) EndLaunch(group);
  return true;
}

// The call with the library's communicator and addresses that the processor reaches.
Fold::Operation CallOf(LaunchedGroup& group, size_t operation) {
  const LiveOperation& live = group.operations[operation];
  Fold::Operation call;
  call.api = live.call.info->id;
  std::copy(std::begin(live.call.args), std::end(live.call.args), call.args.begin());
  call.args[live.call.info->Find(Role::kComm)] = reinterpret_cast<uint64_t>(live.comm->computed());
  for (const preload::BufferUse* use : {&live.input, &live.output})
    if (!use->empty()) call.args[use->arg] = reinterpret_cast<uint64_t>(group.mirror.At(use->data));
  const int at = live.call.info->Find(Role::kRedOp);
  if (at < 0 || live.call.args[at] < ncclNumOps) return call;
  // For good, as the graph. A scalar in device memory is read at the launch.
  const auto found = group.fold.FindOperator(*live.comm, live.call.args[at]);
  if (!found || found->scalar.empty())
    FailLaunch(group, operation,
               "its operator's scalar is in device memory, and it is captured into a CUDA graph; "
               "record the job with --level full");
  const auto made = group.fold.MakeOperator(live.comm->computed(), found->dtype, found->scalar);
  if (!made) FailLaunch(group, operation, made.error().message);
  call.args[at] = *made;
  return call;
}

void Check(const LaunchedGroup& group, size_t operation, DeviceAnswer answer) {
  if (answer != DeviceAnswer::kTaken)
    FailLaunch(group, operation,
               "the CUDA graph that it is captured into cannot have the nodes that bring its data; "
               "record the job with --level full");
}

}  // namespace

void ComputeAtLaunches(Fold& fold, Session& session, ThreadState& thread,
                       std::span<const LiveOperation* const> group) {
  auto* made = new LaunchedGroup{fold, session, thread, {}, {}, {}, {}, {}};
  for (const LiveOperation* live : group) {
    made->operations.push_back(*live);
    made->mirror.Add(live->input);
    made->mirror.Add(live->output);
  }
  made->mirror.Make();
  const uint64_t stream = group.front()->stream;
  for (size_t i = 0; i < made->operations.size(); ++i) {
    const LiveOperation& live = made->operations[i];
    if (live.stream != stream || !live.captured)
      FailLaunch(*made, i,
                 "its group is captured into a CUDA graph on several streams; record the job with "
                 "--level full");
    made->calls.push_back(CallOf(*made, i));
    if (!live.input.empty() && !preload::IsHostMemory(live.input.data))
      made->reads.push_back({made, i});
    if (!live.output.empty() && !preload::IsHostMemory(live.output.data))
      made->writes.push_back({made, i});
  }
  // The parts stay where they are from here on.
  for (Part& part : made->reads) {
    const preload::BufferUse& use = made->operations[part.operation].input;
    Check(*made, part.operation,
          preload::TheDevice().ReadAtLaunches(use.data, use.bytes, stream,
                                              made->operations[part.operation].comm->number(),
                                              &TakeInput, &part, preload::LaunchUse::kInNode));
  }
  for (Part& part : made->writes) {
    const preload::BufferUse& use = made->operations[part.operation].output;
    Check(*made, part.operation,
          preload::TheDevice().WriteAtLaunches(const_cast<void*>(use.data), use.bytes, stream,
                                               made->operations[part.operation].comm->number(),
                                               &BringResult, &part));
  }
}

}  // namespace deja::replayer
