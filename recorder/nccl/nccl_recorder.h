// NcclRecorder: makes calls of NCCL, cuRAND and PyTorch's process groups for real and writes them
// down.
//
// All events of one call are on the caller's stream, in this order: CallEnter (before the real
// call), CommCreated or CallResults, CallLeave.
//
// The fields of the events:
// - CallEnter.blob: the bytes behind the pointer parameters, in the table's order, without
// separators. Unique ids have 128 bytes each; a config as many bytes as its `size` says; int arrays
// 4 bytes an element. The scalar of ncclRedOpCreatePreMulSum has one element.
// - CallEnter.text: the config's commName, or the string parameter.
// - CallEnter.args: an argument whose bytes are in the blob is still its address. A communicator,
// stream, window or registration is its number + 1.
// - CallLeave.outs: one value per out-parameter, in the table's order, when the call succeeded.
// - CallLeave.blob: what out-parameters point to, and the text of ncclGetLastError.
//
// Not recorded: ncclGetErrorString and ncclCommGetAsyncError (its errors become AsyncError events).
//
// One per process, never destroyed. Any thread, under the guard (preload/process/guard.h). errno is
// left as the real call left it.
#ifndef DEJA_RECORDER_NCCL_NCCL_RECORDER_H_
#define DEJA_RECORDER_NCCL_NCCL_RECORDER_H_

#include <cstdint>
#include <string_view>

#include "common/runtime/errno_keeper.h"
#include "preload/calls/group_calls.h"
#include "preload/calls/nccl_calls.h"
#include "recorder/core/digests.h"
#include "recorder/core/recorder.h"
#include "recorder/events/blob.h"
#include "recorder/nccl/nccl_state.h"
#include "recorder/nccl/nccl_thread.h"

namespace deja::recorder {

class NcclRecorder : public preload::NcclCalls,
                     public preload::CurandCalls,
                     public preload::GroupCalls {
 public:
  explicit NcclRecorder(Recorder& recorder) : recorder_(recorder) {}

  void OnNcclCall(preload::Call& call) override;
  void OnCurandCall(preload::Call& call) override;
  [[nodiscard]] preload::GroupMode ModeOfGroups() const override {
    return preload::GroupMode::kRecording;
  }
  void OnGroupCall(preload::GroupCall& call) override;
  void OnGroupDone(const preload::GroupEnd& end) override;
  void OnStoreCall(preload::StoreCall& call) override;

 private:
  // calls.cc
  void FillEnter(Recording& rec, const preload::Call& call, format::CallEnter& enter, Blob& blob);
  // For a call whose arguments are all that is to be read. Returns the event's number.
  uint64_t WritePlainEnter(Recording& rec, const preload::Call& call);
  void RecordPlain(Recording& rec, preload::Call& call);
  void WriteLeave(Recording& rec, const preload::Call& call, uint64_t enter_seq);
  uint32_t HandleWire(Recording& rec, HandleKind kind, uint64_t value);

  // process_groups.cc
  void RecordNewGroup(Recording& rec, preload::GroupCall& call);

  // generators.cc
  void RecordGenerate(Recording& rec, preload::Call& call);
  void RecordGeneratorChange(Recording& rec, preload::Call& call);

  // collectives.cc
  // What is known before the call: its number, and the digest of what it reads. `op` has its
  // stream. Returns the event's number.
  uint64_t EnterOperation(Recording& rec, const preload::Call& call, Communicator* comm,
                          PendingOp& op);
  void RecordOperation(Recording& rec, preload::Call& call);
  void RecordGroup(Recording& rec, preload::Call& call);
  void RecordAsyncError(Recording& rec, preload::Call& call);
  void EndGroup(Recording& rec, NcclThread& state, uint64_t result);
  void AskLateInput(Recording& rec, const PendingOp& op);
  void WriteResults(Recording& rec, const PendingOp& op);
  void WriteAll(Recording& rec, OpList list);
  void DropAll(Recording& rec, OpList list);
  // Operations that were given up before they had results.
  void WriteAborted(Recording& rec, OpList list);
  void GiveUp(Recording& rec, const preload::Call& call, Communicator& comm);

  // comm_lifecycle.cc
  void RecordLifecycle(Recording& rec, preload::Call& call);
  void CreatedAfter(Recording& rec, const preload::Call& call, Communicator* parent);
  void ResolvePending(Recording& rec, NcclThread& state, uint32_t parent, uint64_t handle);
  bool Created(Recording& rec, const PendingComm& made);

  Recorder& recorder_;
};

// The name in an ncclConfig_t (null allowed); empty if it has none.
std::string_view ConfigName(uint64_t address);

}  // namespace deja::recorder

#endif  // DEJA_RECORDER_NCCL_NCCL_RECORDER_H_
