#include "replayer/plan/replay_plan.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "format/log/rank_log.h"
#include "replayer/plan/plan_builder.h"

namespace deja::replayer {
namespace {

void AddAll(PlanBuilder& builder, const format::RankReader& reader, size_t batch, uint64_t kinds) {
  builder.BeginBatch(batch);
  const auto cursor = reader.EventsOfBatch(batch);
  while (const format::Event* event = cursor->NextOf(kinds)) builder.Add(*event);
}

}  // namespace

Result<std::unique_ptr<ReplayPlan>> ReplayPlan::Build(const format::RankReader& reader,
                                                      const ApiKinds& kinds,
                                                      const format::RecordedCheckpoint* checkpoint,
                                                      const PlannedEnd& end) {
  std::unique_ptr<ReplayPlan> plan(new ReplayPlan(reader));
  if (checkpoint != nullptr) plan->start_ = std::make_unique<LateStart>(*checkpoint);
  const format::TraceHeader& header = reader.header();
  plan->rank = header.rank;
  plan->pid = header.process.pid;
  plan->parent_pid = header.process.parent_pid;
  plan->begin_ns = header.start_mono_ns;
  plan->level = static_cast<Level>(header.level);
  plan->nccl_version = header.process.nccl_version;
  plan->fate = reader.totals().fate;
  plan->kept_inputs = header.inputs;
  plan->redacted = header.redacted;
  plan->names_interpreter_waits = header.names_interpreter_waits;
  plan->names_python_locks = header.names_python_locks;
  plan->working_directory = std::string(header.process.working_directory);
  PlanBuilder builder(*plan, kinds);
  std::pair<size_t, size_t> between;
  if (checkpoint != nullptr) between = BatchesBetween(reader, *checkpoint);
  for (size_t batch = 0; batch < between.first; ++batch)
    AddAll(builder, reader, batch, ~uint64_t{0});
  for (size_t batch = between.first; batch < between.second;) {
    size_t behind = batch + 1;
    const format::BatchBlock* block = reader.batches().BlockAt(batch, behind);
    if (block == nullptr || behind > between.second || KindsNeededBetween(block->all) != 0) {
      behind = batch + 1;
      block = nullptr;
    }
    const format::BatchInfo& info = block != nullptr ? block->all : reader.batches()[batch];
    if (const uint64_t kinds = KindsNeededBetween(info); block == nullptr && kinds != 0)
      AddAll(builder, reader, batch, kinds);
    for (const format::CommRange& operations : info.comms)
      plan->start_->AddOperation(operations.comm, operations.last_seq);
    batch = behind;
  }
  const size_t needed = BatchesNeeded(reader, end);
  for (size_t batch = between.second; batch < needed; ++batch)
    AddAll(builder, reader, batch, ~uint64_t{0});
  DEJA_RETURN_IF_ERROR(builder.Finish());
  for (RecordedFile& file : plan->files_)
    for (RecordedRange& range : file.ranges)
      if (range.kept && !reader.PayloadSize(range.hash) && reader.Dropped(range.segment)) {
        range.kept = false;
        range.dropped = true;
      }
  return plan;
}

namespace {

std::optional<format::Tensor> TensorAt(const std::vector<format::Tensor>& launches,
                                       uint64_t launch) {
  return launch < launches.size() ? std::optional(launches[launch]) : std::nullopt;
}

}  // namespace

std::optional<format::Tensor> ReplayPlan::ReadAt(uint32_t call, uint64_t launch) const {
  if (auto it = launches_.find(call); it != launches_.end() && !it->second.read.empty())
    return TensorAt(it->second.read, launch);
  return launch == 0 ? TensorAt(Tensors(calls_[call].inputs), 0) : std::nullopt;
}

std::optional<format::Tensor> ReplayPlan::ProducedAt(uint32_t call, uint64_t launch) const {
  if (auto it = launches_.find(call); it != launches_.end() && !it->second.produced.empty())
    return TensorAt(it->second.produced, launch);
  return launch == 0 ? TensorAt(Tensors(calls_[call].outputs), 0) : std::nullopt;
}

uint32_t ReplayPlan::FindOperation(uint32_t comm, uint64_t seq) const {
  auto it = operations_.find(comm);
  if (it == operations_.end()) return kNone;
  const auto& ops = it->second;
  // Dense unless events were lost.
  if (seq >= 1 && seq <= ops.size() && calls_[ops[seq - 1]].comm_seq == seq) return ops[seq - 1];
  const auto at = std::lower_bound(
      ops.begin(), ops.end(), seq,
      [this](uint32_t call, uint64_t wanted) { return calls_[call].comm_seq < wanted; });
  return at != ops.end() && calls_[*at].comm_seq == seq ? *at : kNone;
}

uint32_t ReplayPlan::LatestOperation(uint32_t comm, uint64_t seq) const {
  auto it = operations_.find(comm);
  if (it == operations_.end()) return kNone;
  const auto& ops = it->second;
  const auto behind = std::upper_bound(
      ops.begin(), ops.end(), seq,
      [this](uint64_t wanted, uint32_t call) { return wanted < calls_[call].comm_seq; });
  if (behind == ops.begin()) return kNone;
  const uint32_t call = *std::prev(behind);
  return calls_[call].comm_seq == seq ? call : kNone;
}

uint64_t ReplayPlan::LastOperation(uint32_t comm) const {
  auto it = operations_.find(comm);
  return it == operations_.end() || it->second.empty() ? 0 : calls_[it->second.back()].comm_seq;
}

uint32_t ReplayPlan::FindThread(std::string_view name) const {
  auto it = thread_by_name_.find(name);
  return it == thread_by_name_.end() ? kNone : it->second;
}

const RecordedComm* ReplayPlan::FindComm(uint32_t number) const {
  for (const RecordedComm& comm : comms_)
    if (comm.number == number) return &comm;
  return nullptr;
}

int64_t ReplayPlan::AsyncErrorAfter(uint32_t comm, uint64_t ops) const {
  int64_t result = 0;
  for (const RecordedAsyncError& error : async_errors_)
    if (error.comm == comm && error.after_ops <= ops) result = error.result;
  return result;
}

std::span<const format::StackFrame> ReplayPlan::Stack(uint32_t stack) const {
  auto it = stacks_.find(stack);
  if (it == stacks_.end()) return {};
  return it->second;
}

const RecordedModule* ReplayPlan::Module(uint32_t module) const {
  auto it = modules_.find(module);
  return it == modules_.end() ? nullptr : &it->second;
}

}  // namespace deja::replayer
