// Calls of the MPI API.
//
// They have no communicator number of NCCL's: they are matched in the order of their thread. The
// enter record is as of any call (preload/calls/mpi_call.h describes it). Results follow as
// CallResults with communicator 0 and the enter's number, one for each buffer or request that has
// some. CallLeave has the other out-parameters.
//
// Some calls only ask whether something has happened. Those that get "no" are counted; the count
// stands after the arguments of the next one that gets "yes".
#include "preload/stack/stack.h"
#include "recorder/facts/rank_identity.h"
#include "recorder/mpi/mpi_recorder.h"
#include "recorder/mpi/mpi_results.h"

namespace deja::recorder {

using api::MpiApi;
using preload::Call;
using preload::MpiBuffer;
using preload::MpiEnter;

namespace {

MpiApi ApiOf(const Call& call) {
  return static_cast<MpiApi>(call.info->id);
}

bool IsInit(const Call& call) {
  return ApiOf(call) == MpiApi::kMPI_Init || ApiOf(call) == MpiApi::kMPI_Init_thread;
}

// The program can know the answer by itself, in a replay, too.
bool NeedsNoRecord(const Call& call) {
  switch (ApiOf(call)) {
    case MpiApi::kMPI_Initialized:
    case MpiApi::kMPI_Finalized:
    case MpiApi::kMPI_Get_address:
    case MpiApi::kMPI_Address:
      return true;
    default:
      return false;
  }
}

// The rank as MPI knows it, for a process that got none from a launcher.
void BecomeMpiRank(Recording& rec) {
  const uint64_t world = preload::MpiCommWorld();
  const preload::MpiPlace place = MpiOf(rec).PlaceOf(world);
  if (place.known) rec.BecomeRank(place.rank, place.size);
}

uint64_t WriteEnter(Recording& rec, const Call& call, const MpiEnter& described,
                    format::CallEnter& enter) {
  enter.api = call.info->id;
  if (call.info->klass != api::ApiClass::kQuery) enter.stack = preload::CaptureStack(rec.writer);
  enter.args = described.args;
  enter.blob = described.blob();
  return rec.writer.Write(enter);
}

void AddInput(Recording& rec, const Call& call, format::CallEnter& enter) {
  if (preload::IsPersistent(*call.info)) return;  // is sent when the request is started
  const MpiBuffer input = preload::MpiInput(call, MpiOf(rec));
  if (input.present()) enter.inputs.push_back(MpiTensor(rec, input));
}

// What the persistent requests send that the call starts.
void AddStarted(Recording& rec, const MpiHandlesBefore& handles, format::CallEnter& enter) {
  for (size_t i = 0; i < handles.count(); ++i) {
    Call made;
    if (!MpiOf(rec).RestartRequest(handles[i], made)) continue;
    const MpiBuffer input = preload::MpiInput(made, MpiOf(rec));
    if (input.present() && enter.inputs.size() < format::kMaxCallTensors)
      enter.inputs.push_back(MpiTensor(rec, input));
  }
}

void AddBlockingOutput(Recording& rec, const Call& call, const MpiStatuses& statuses,
                       MpiResults& results) {
  const MpiBuffer output = preload::MpiOutput(call, MpiOf(rec));
  if (!output.present()) return;
  uint64_t limit = ~uint64_t{0};
  if (preload::IsReceive(*call.info) && statuses.at(0) != nullptr)
    limit = preload::TheMpiAbi().ReceivedBytes(statuses.at(0));
  results.AddBuffer(output, limit, static_cast<uint32_t>(output.arg));
}

// A call that came back without an answer: the question is asked again later.
bool SaysNo(const Call& call) {
  if (ApiOf(call) == MpiApi::kMPI_Testsome) return MpiOutInt(call, "outcount", 0) == 0;
  return MpiOutInt(call, "flag", 0) == 0;
}

}  // namespace

void MpiRecorder::OnMpiCall(Call& call) {
  Recording* rec = recorder_.Active();
  if (rec == nullptr || NeedsNoRecord(call)) return call.invoke(call);
  // A library that has initialised MPI for itself (PyTorch's backend) may end it when the process
  // exits. A replay has no such library's MPI.
  if (ApiOf(call) == MpiApi::kMPI_Finalize && !MpiOf(*rec).is_programs()) return call.invoke(call);
  if (call.info->klass == api::ApiClass::kPoll) return RecordMpiPoll(*rec, call);
  RecordMpi(*rec, call);
}

void MpiRecorder::RecordMpi(Recording& rec, Call& call) {
  MpiEnter described;
  MpiHandlesBefore before(call);
  MpiStatuses statuses(call);
  uint64_t enter_seq = 0;
  {
    ErrnoKeeper keep;
    // Before the call: an MPI_Init that never returns is worth a trace, too.
    if (IsInit(call) && HasLauncherRank()) rec.BecomeRank(0, 0);
    format::CallEnter enter;
    statuses.Restore();
    preload::DescribeMpiCall(call, MpiOf(rec), described);
    AddInput(rec, call, enter);
    if (ApiOf(call) == MpiApi::kMPI_Start || ApiOf(call) == MpiApi::kMPI_Startall)
      AddStarted(rec, before, enter);
    enter_seq = WriteEnter(rec, call, described, enter);
    if (MpiThread* state = PartOf<MpiThread>(preload::Self())) state->polls = 0;
    if (ApiOf(call) == MpiApi::kMPI_Finalize) MpiOf(rec).SetRunning(false);
    // Does not come back.
    if (ApiOf(call) == MpiApi::kMPI_Abort)
      recorder_.life().OnExit(static_cast<int>(call.args[1]), preload::ExitHow::kUnderscoreExit);
    statuses.Substitute();
    before.Take(MpiOf(rec));
  }
  call.invoke(call);
  ErrnoKeeper keep;
  statuses.Restore();
  before.PutBack(MpiOf(rec));
  if (IsInit(call) && call.result == 0) {
    MpiOf(rec).SetRunning(true);
    MpiOf(rec).SetPrograms();
    BecomeMpiRank(rec);
  }
  MpiResults results(rec, call, enter_seq);
  if (call.result == 0) {
    if (!EndsWithRequest(call))
      AddBlockingOutput(rec, call, statuses, results);
    else
      MpiOf(rec).AddRequest(preload::TheMpiAbi().HandleAt(call.args[call.info->param_count - 1]),
                            call, preload::IsPersistent(*call.info));
  }
  results.AddRequests(before, statuses);
  results.AddPacked(described);
  results.WriteLeave(before, statuses);
  before.End(MpiOf(rec));
}

void MpiRecorder::RecordMpiPoll(Recording& rec, Call& call) {
  MpiEnter described;
  MpiHandlesBefore before(call);
  MpiStatuses statuses(call);
  {
    ErrnoKeeper keep;
    preload::DescribeMpiCall(call, MpiOf(rec), described);
    before.Take(MpiOf(rec));
    statuses.Substitute();
  }
  call.invoke(call);
  ErrnoKeeper keep;
  statuses.Restore();
  before.PutBack(MpiOf(rec));
  MpiThread* state = PartOf<MpiThread>(preload::Self());
  if (call.result == 0 && SaysNo(call)) {
    if (state != nullptr) ++state->polls;
    return;
  }
  described.args.push_back(state == nullptr ? 0 : state->polls);
  format::CallEnter enter;
  const uint64_t enter_seq = WriteEnter(rec, call, described, enter);
  if (state != nullptr) state->polls = 0;
  MpiResults results(rec, call, enter_seq);
  results.AddRequests(before, statuses);
  results.WriteLeave(before, statuses);
  before.End(MpiOf(rec));
}

}  // namespace deja::recorder
