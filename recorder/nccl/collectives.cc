// Collectives, point-to-point calls and groups: their inputs before the call, their results when
// they are there.

#include "api/nccl_table.h"
#include "digest/digest.h"
#include "include/compat/nccl.h"
#include "preload/calls/buffers.h"
#include "recorder/nccl/nccl_recorder.h"

namespace deja::recorder {

using api::NcclApi;
using api::Role;
using preload::BufferUse;
using preload::Call;

namespace {

format::Tensor DescriptionOf(const BufferUse& use) {
  format::Tensor tensor;
  tensor.param = static_cast<uint32_t>(use.arg);
  tensor.dtype = use.dtype;
  tensor.count = use.elements;
  tensor.address = reinterpret_cast<uint64_t>(use.data);
  return tensor;
}

// True if the bytes are wanted, and come in the order of a stream.
bool ComesLater(const Recording& rec, const BufferUse& use) {
  return rec.config.level != Level::kOrder && !use.empty() && DeviceReads::Needed(use.data);
}

IssuedCollective Issued(const Call& call) {
  IssuedCollective issued;
  if (call.info->klass != api::ApiClass::kCollective) return issued;
  issued.info = call.info;
  issued.send = call.Arg<const void*>(0);
  const bool in_place = call.info->params[0].role == Role::kInRootOut;
  issued.recv = call.Arg<const void*>(in_place ? 0 : 1);
  issued.count = call.ArgOf(Role::kCount);
  issued.element_size = digest::ElementSize(static_cast<uint32_t>(call.ArgOf(Role::kDType)));
  issued.root = static_cast<int>(call.ArgOf(Role::kRoot));
  return issued;
}

}  // namespace

uint64_t NcclRecorder::EnterOperation(Recording& rec, const Call& call, Communicator* comm,
                                      PendingOp& op) {
  ErrnoKeeper keep;
  format::CallEnter enter;
  Blob blob;
  BufferUse input;
  bool input_later = false;
  if (comm != nullptr) {
    op.comm = comm->wire();
    op.comm_seq = comm->Next(rec.steps.load(std::memory_order_relaxed));
    op.series = comm->SeriesOf(op.comm_seq);
    op.output = preload::OutputBuffer(*call.info, call.args, comm->nranks, comm->rank);
    input = preload::InputBuffer(*call.info, call.args, comm->nranks, comm->rank);
    input_later = ComesLater(rec, input);
    if (!input.empty()) {
      enter.inputs.push_back(DescriptionOf(input));
      if (!input_later) DigestNow(rec, input, false, enter.inputs[0]);
    }
    // The group's work is enqueued at its end, after what the program enqueues until then.
    const bool is_read = input_later && input.arg != op.output.arg;
    if (is_read && preload::Self().group_depth > 0) op.late_input = input;
    enter.reads_at_end = op.late_input.empty() ? 0 : 1;
    op.tells_end = op.output.empty() && input_later && !preload::TheDevice().IsCaptured(op.stream);
    enter.tells_end = op.tells_end ? 1 : 0;
  }
  FillEnter(rec, call, enter, blob);
  enter.comm_seq = op.comm_seq;
  const uint64_t enter_seq = rec.writer.Write(enter);
  // A buffer that is both input and output is read as the result: the root does not change it.
  if (input_later && input.arg != op.output.arg && op.late_input.empty())
    NcclOf(rec).device_reads.Ask({op.comm, op.comm_seq, 0}, enter.inputs[0], input.bytes, op.stream,
                                 false);
  return enter_seq;
}

void NcclRecorder::RecordOperation(Recording& rec, Call& call) {
  Communicator* comm = NcclOf(rec).comms.Find(call.ArgOf(Role::kComm));
  PendingOp op;
  op.stream = call.ArgOf(Role::kStream);
  if (NcclOf(rec).choices.told() && comm != nullptr) op.issued = Issued(call);
  const uint64_t enter_seq = EnterOperation(rec, call, comm, op);
  {
    const NcclChoices::Open open(rec, &op, nullptr);
    call.invoke(call);
  }
  ErrnoKeeper keep;
  bool accepted = call.result == ncclSuccess || call.result == ncclInProgress;
  preload::ThreadRecord& self = preload::Self();
  const bool is_described = self.group_depth > 0 && op.issued.info != nullptr;
  if (accepted && (!op.output.empty() || !op.late_input.empty() || op.tells_end || is_described)) {
    bool later = self.group_depth > 0 || call.result == ncclInProgress;
    PendingOp* kept = later ? NcclOf(rec).ops.Get() : nullptr;
    NcclThread* state = PartOf<NcclThread>(self);
    if (kept != nullptr)
      *kept = op;
    else
      AskLateInput(rec, op);
    if (!later) {
      WriteResults(rec, op);
    } else if (kept != nullptr && self.group_depth > 0 && state != nullptr) {
      state->group_ops.Push(kept);
    } else if (kept != nullptr) {
      Hold hold(comm->pending_lock);
      comm->pending.Push(kept);
    }
  }
  NcclOf(rec).choices.WriteLate();
  WriteLeave(rec, call, enter_seq);
}

void NcclRecorder::AskLateInput(Recording& rec, const PendingOp& op) {
  if (op.late_input.empty()) return;
  NcclOf(rec).device_reads.Ask({op.comm, op.comm_seq, 0}, DescriptionOf(op.late_input),
                               op.late_input.bytes, op.stream, false);
}

void NcclRecorder::WriteResults(Recording& rec, const PendingOp& op) {
  if (op.tells_end)
    return NcclOf(rec).device_reads.AskEnd({op.comm, op.comm_seq, op.series}, op.stream);
  if (op.output.empty()) return;  // kept for what NCCL says of it
  format::Tensor tensor = DescriptionOf(op.output);
  if (ComesLater(rec, op.output))
    return NcclOf(rec).device_reads.Ask({op.comm, op.comm_seq, op.series}, tensor, op.output.bytes,
                                        op.stream, true);
  DigestNow(rec, op.output, true, tensor, op.series);
  format::CallResults results;
  results.comm = op.comm;
  results.comm_seq = op.comm_seq;
  results.outputs.push_back(tensor);
  rec.writer.Write(results);
}

void NcclRecorder::WriteAll(Recording& rec, OpList list) {
  while (PendingOp* op = list.Pop()) {
    WriteResults(rec, *op);
    NcclOf(rec).ops.Put(op);
  }
}

void NcclRecorder::WriteAborted(Recording& rec, OpList list) {
  while (PendingOp* op = list.Pop()) {
    if (!op->output.empty())
      NcclOf(rec).device_reads.WriteAborted({op->comm, op->comm_seq, op->series},
                                            DescriptionOf(op->output));
    NcclOf(rec).ops.Put(op);
  }
}

void NcclRecorder::DropAll(Recording& rec, OpList list) {
  while (PendingOp* op = list.Pop()) NcclOf(rec).ops.Put(op);
}

void NcclRecorder::RecordGroup(Recording& rec, Call& call) {
  auto api = static_cast<NcclApi>(call.info->id);
  const uint64_t enter_seq = WritePlainEnter(rec, call);
  {
    auto* state = PartIfAny<NcclThread>(preload::Self());
    if (api == NcclApi::ncclGroupEnd && state != nullptr && preload::Self().group_depth == 1) {
      const ErrnoKeeper keep;
      for (const PendingOp* op = state->group_ops.first(); op != nullptr; op = op->next)
        AskLateInput(rec, *op);
    }
    const NcclChoices::Open open(rec, nullptr, state == nullptr ? nullptr : &state->group_ops);
    call.invoke(call);
  }
  ErrnoKeeper keep;
  NcclOf(rec).choices.WriteLate();
  preload::ThreadRecord& self = preload::Self();
  if (api == NcclApi::ncclGroupStart && call.result == ncclSuccess) ++self.group_depth;
  // Ends the group, and nothing of it happens.
  if (api == NcclApi::ncclGroupSimulateEnd && call.result == ncclSuccess && self.group_depth > 0 &&
      --self.group_depth == 0) {
    if (NcclThread* state = PartOf<NcclThread>(self)) {
      state->pending_comm_count = 0;
      DropAll(rec, state->group_ops.Take());
    }
  }
  if (api == NcclApi::ncclGroupEnd && self.group_depth > 0 && --self.group_depth == 0) {
    if (NcclThread* state = PartOf<NcclThread>(self)) EndGroup(rec, *state, call.result);
  }
  WriteLeave(rec, call, enter_seq);
}

// After the outermost ncclGroupEnd.
void NcclRecorder::EndGroup(Recording& rec, NcclThread& state, uint64_t result) {
  bool accepted = result == ncclSuccess || result == ncclInProgress;
  if (accepted)
    ResolvePending(rec, state, 0, 0);
  else
    state.pending_comm_count = 0;
  OpList ops = state.group_ops.Take();
  if (result == ncclSuccess) return WriteAll(rec, ops);
  if (result != ncclInProgress) return DropAll(rec, ops);
  while (PendingOp* op = ops.Pop()) {
    if (op->output.empty() && !op->tells_end) {
      NcclOf(rec).ops.Put(op);
      continue;
    }
    Communicator* comm = NcclOf(rec).comms.ByWire(op->comm);
    Hold hold(comm->pending_lock);
    comm->pending.Push(op);
  }
}

// How a program learns that a communicator's operations are done, or that they never will be.
void NcclRecorder::RecordAsyncError(Recording& rec, Call& call) {
  call.invoke(call);
  ErrnoKeeper keep;
  NcclOf(rec).choices.WriteLate();
  auto* out = call.Arg<ncclResult_t*>(call.info->Find(Role::kOutResult));
  Communicator* comm = NcclOf(rec).comms.Find(call.ArgOf(Role::kComm));
  if (call.result != ncclSuccess || out == nullptr || *out == ncclInProgress) return;
  auto* state = PartIfAny<NcclThread>(preload::Self());
  if (*out == ncclSuccess && state != nullptr && state->pending_comm_count > 0)
    ResolvePending(rec, *state, comm != nullptr ? comm->wire() : 0, call.ArgOf(Role::kComm));
  if (comm == nullptr) return;
  OpList done;
  {
    Hold hold(comm->pending_lock);
    done = comm->pending.Take();
  }
  if (*out == ncclSuccess) return WriteAll(rec, done);
  DropAll(rec, done);
  if (comm->async_error.exchange(*out) == *out) return;
  rec.writer.Write(format::AsyncError{comm->wire(), *out});
}

}  // namespace deja::recorder
