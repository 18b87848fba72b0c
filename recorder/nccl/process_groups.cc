// Operations of PyTorch's process groups and calls of its stores.
//
// An operation's CallEnter and CallLeave stand around its issue, on the caller's stream. Its
// CallResults comes when it has ended, on the thread that noticed; so does, for one that failed or
// has received from any source, the call c10d_work, whose blob in the enter record is the error.
#include "api/c10d_table.h"
#include "digest/digest.h"
#include "preload/stack/stack.h"
#include "recorder/facts/rank_identity.h"
#include "recorder/nccl/nccl_recorder.h"

namespace deja::recorder {

using api::C10dApi;
using api::Role;
using preload::BufferUse;
using preload::GroupCall;

namespace {

// Longer messages are cut.
constexpr size_t kMaxError = 2000;

// Longer values of a store are payloads.
constexpr size_t kMaxValue = 16 << 10;

void WriteLongValue(Recording& rec, std::string_view value, uint64_t enter_seq) {
  const auto bytes = std::as_bytes(std::span(value));
  format::Tensor tensor;
  tensor.dtype = format::kRawBytes;
  tensor.count = bytes.size();
  tensor.hash = digest::HashBytes(bytes);
  const format::Placed placed = rec.KeepPayload(tensor.hash, bytes, 1);
  tensor.payload = static_cast<uint32_t>(placed.kept ? format::PayloadState::kKept
                                                     : format::PayloadState::kDropped);
  tensor.segment = placed.segment;
  format::CallResults results;
  results.comm_seq = enter_seq;
  results.outputs.push_back(tensor);
  rec.writer.Write(results);
}

// A leave record with what the call raised, if it did.
void WriteRaised(Recording& rec, const GroupCall& call, uint64_t enter_seq) {
  format::CallLeave leave;
  leave.enter_seq = enter_seq;
  leave.result = static_cast<int64_t>(call.result);
  leave.blob = call.error.substr(0, kMaxError);
  rec.writer.Write(leave);
}

format::Tensor Describe(Recording& rec, const BufferUse& use, bool keep, uint32_t series = 0) {
  format::Tensor tensor;
  tensor.param = static_cast<uint32_t>(use.arg);
  tensor.dtype = use.dtype;
  tensor.count = use.elements;
  tensor.address = reinterpret_cast<uint64_t>(use.data);
  DigestNow(rec, use, keep, tensor, series);
  return tensor;
}

}  // namespace

void NcclRecorder::OnGroupCall(GroupCall& call) {
  Recording* rec = recorder_.Active();
  if (rec == nullptr) return call.invoke(call);
  if (static_cast<C10dApi>(call.info->id) == C10dApi::c10d_new_group)
    return RecordNewGroup(*rec, call);
  Communicator* comm = NcclOf(*rec).comms.Find(call.ArgOf(Role::kComm));
  uint64_t enter_seq = 0;
  {
    ErrnoKeeper keep;
    format::CallEnter enter;
    Blob blob;
    const bool counts = call.info->klass != api::ApiClass::kLifecycle;
    if (comm != nullptr && counts) {
      call.operation = comm->Next(rec->steps.load(std::memory_order_relaxed));
      const BufferUse input = preload::InputBuffer(*call.info, call.args, comm->nranks, comm->rank);
      if (!input.empty()) enter.inputs.push_back(Describe(*rec, input, false));
    }
    FillEnter(*rec, call, enter, blob);
    enter.comm_seq = call.operation;
    enter_seq = rec->writer.Write(enter);
  }
  call.invoke(call);
  ErrnoKeeper keep;
  WriteRaised(*rec, call, enter_seq);
}

void NcclRecorder::RecordNewGroup(Recording& rec, GroupCall& call) {
  const int rank = static_cast<int>(call.ArgOf(Role::kRank));
  const int nranks = static_cast<int>(call.ArgOf(Role::kNRanks));
  {
    ErrnoKeeper keep;
    // Before the call: a group that never comes about is worth a trace, too.
    rec.BecomeRank(rank, nranks);
  }
  const uint64_t enter_seq = WritePlainEnter(rec, call);
  call.invoke(call);
  ErrnoKeeper keep;
  if (call.result != 0) return WriteRaised(rec, call, enter_seq);
  // Handles of groups are numbers of ours, apart from all addresses.
  static std::atomic<uint64_t> groups{0};
  const uint64_t handle = ~(groups.fetch_add(1, std::memory_order_relaxed) + 1);
  Communicator* comm = NcclOf(rec).comms.Add(handle, call.identity, rank, nranks);
  auto* group = call.Arg<uint64_t*>(call.info->Find(Role::kNewComm));
  if (comm != nullptr && group != nullptr) {
    *group = handle;
    format::CommCreated created;
    created.comm = comm->wire();
    created.hash = comm->hash;
    created.rank = static_cast<uint32_t>(rank);
    created.nranks = static_cast<uint32_t>(nranks);
    created.name = call.Arg<const char*>(call.info->Find(Role::kString));
    created.device = -1;
    rec.writer.Write(created);
  }
  WriteLeave(rec, call, enter_seq);
}

void NcclRecorder::OnGroupDone(const preload::GroupEnd& end) {
  Recording* rec = recorder_.Active();
  Communicator* comm = rec == nullptr ? nullptr : NcclOf(*rec).comms.Find(end.group);
  if (comm == nullptr || end.operation == 0) return;
  ErrnoKeeper keep;
  if (end.failed || end.src >= 0) {
    format::CallEnter enter;
    enter.api = static_cast<uint32_t>(C10dApi::c10d_work);
    enter.comm = comm->wire();
    enter.args.push_back(comm->wire());
    enter.args.push_back(end.operation);
    enter.args.push_back(static_cast<uint64_t>(static_cast<int64_t>(end.src)));
    enter.blob = end.error.substr(0, kMaxError);
    format::CallLeave leave;
    leave.enter_seq = rec->writer.Write(enter);
    leave.result = end.failed ? 1 : 0;
    rec->writer.Write(leave);
  }
  if (end.failed) return;
  format::CallResults results;
  results.comm = comm->wire();
  results.comm_seq = end.operation;
  BufferUse output;
  output.data = end.output.data();
  output.bytes = end.output.size();
  output.dtype = end.dtype;
  const uint64_t element = digest::ElementSize(end.dtype);
  output.elements = element == 0 ? 0 : end.output.size() / element;
  output.arg = api::C10dInfo(C10dApi::c10d_allreduce).Find(Role::kOut);
  if (!output.empty())
    results.outputs.push_back(Describe(*rec, output, true, comm->SeriesOf(end.operation)));
  rec->writer.Write(results);
}

void NcclRecorder::OnStoreCall(preload::StoreCall& call) {
  Recording* rec = recorder_.Active();
  if (rec == nullptr) return call.invoke(call);
  format::CallLeave leave;
  {
    ErrnoKeeper keep;
    // Before the call: ranks that never meet are worth a trace, too.
    if (call.of_rank && HasLauncherRank()) rec->BecomeRank(0, 0);
    format::CallEnter enter;
    enter.api = call.info->id;
    enter.stack = preload::CaptureStack(rec->writer);
    enter.blob = call.key;
    leave.enter_seq = rec->writer.Write(enter);
  }
  call.invoke(call);
  ErrnoKeeper keep;
  leave.result = static_cast<int64_t>(call.result);
  if (call.value.size() <= kMaxValue)
    leave.blob = call.value;
  else
    WriteLongValue(*rec, call.value, leave.enter_seq);
  rec->writer.Write(leave);
}

}  // namespace deja::recorder
