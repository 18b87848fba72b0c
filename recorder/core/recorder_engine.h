// RecorderEngine: makes every call for real and writes down what happened.
//
// The order of the events of one call: CallEnter (before the real call), CommCreated or
// CallResults, CallLeave, all on the caller's stream. collectives.cc, comm_lifecycle.cc, inputs.cc,
// snapshots.cc and crash.cc each hold one idea; calls.cc has what the calls of the NCCL API share.
//
// What stands in CallEnter.blob: the bytes behind the pointer parameters, in the table's order,
// without separators (unique ids 128 bytes each; a config as many bytes as its `size` says; int
// arrays 4 bytes an element; the scalar of ncclRedOpCreatePreMulSum one element). CallEnter.text:
// the config's commName, or the string parameter. An argument whose bytes are in the blob is still
// its address in `args`; a communicator, stream, window or registration is its number + 1.
// CallLeave.outs: one value per out-parameter, in the table's order, when the call succeeded.
// CallLeave.blob: what out-parameters point to, and the text of ncclGetLastError. Not recorded:
// ncclGetErrorString and ncclCommGetAsyncError (its errors become AsyncError events).
//
// One per process. Any thread, under the guard (preload/process/guard.h). errno is left as the real
// call left it.
#ifndef DEJA_RECORDER_CORE_RECORDER_ENGINE_H_
#define DEJA_RECORDER_CORE_RECORDER_ENGINE_H_

#include <atomic>

#include "common/runtime/errno_keeper.h"
#include "preload/engine/buffers.h"
#include "preload/engine/engine.h"
#include "recorder/core/recording.h"
#include "recorder/core/thread_state.h"

namespace deja::recorder {

class RecorderEngine final : public preload::Engine {
 public:
  RecorderEngine(const Config& config, LogFactory make_log)
      : config_(config), make_log_(make_log) {}

  void OnNcclCall(preload::Call& call) override;
  void OnMpiCall(preload::Call& call) override;
  void OnCurandCall(preload::Call& call) override;
  [[nodiscard]] preload::GroupMode ModeOfGroups() const override {
    return preload::GroupMode::kRecording;
  }
  void OnGroupCall(preload::GroupCall& call) override;
  void OnGroupDone(const preload::GroupEnd& end) override;
  void OnStoreCall(preload::StoreCall& call) override;
  void OnNotRecorded(std::string_view what, bool may_be) override;
  void OnInput(preload::InputCall& call) override;
  int64_t OnClock(format::ClockSource source, int64_t live_ns) override;
  uint64_t OnStep(uint64_t step) override;
  void OnCheckpointWanted() override;
  void OnNote(std::string_view text) override;
  void OnSnapshot(const preload::SnapshotCall& call) override;
  void OnUpdate(const format::OptimizerUpdate& update) override;
  void OnThreadStart() override {}  // a thread's stream begins with its first event
  void OnThreadEnd() override;
  void OnCrash(int signal, const siginfo_t* info, void* ucontext) override;
  void OnExit(int code, preload::ExitHow how) override;
  void OnForkChild() override;
  const char* MapPath(int dirfd, const char* path, preload::FileUse use,
                      std::span<char> buffer) override;
  void BeforeUnmap(void* memory, size_t size) override;
  preload::FdObject* OnOpened(int dirfd, const char* path, int fd, int flags) override;
  void OnTaken(int dirfd, const char* path) override;
  void ReleasePath(const char* mapped) override { MachineRecorder::Release(mapped); }
  bool MayConnect(int, const void*, uint32_t) override { return true; }
  bool MayKill(int, int) override { return true; }
  preload::ConnectionLayer* Connections() override { return connections_; }
  preload::FolderLayer* Folders() override { return folders_; }
  void SetFolders(preload::FolderLayer* layer) { folders_ = layer; }
  void SetConnections(preload::ConnectionLayer* layer) { connections_ = layer; }
  int OnChildMade(uint32_t number, int pid) override;
  void AfterWait(preload::WaitCall& call) override;
  void OnAcquire(preload::AcquireCall& call) override;
  void OnPoll(preload::PollCall& call) override;
  void OnCount(preload::CountCall& call) override;
  void OnPipeRead(preload::OwnPipe& pipe, preload::Transfer& transfer) override;
  void OnPipeWrite(preload::OwnPipe& pipe, preload::Transfer& transfer) override;
  preload::PipeTable* Pipes() override;
  void OnFilter(const char* call, bool& for_all) override;
  void OnThreadsMeet() override;
  void OnLock(preload::LockCall& call) override;
  void OnOnceBegins(preload::LockCall& call) override;

  // Once, when the library is loaded: a process that is recorded for its own sake is a rank now.
  void BeginSingle();
  // Completes the rank's folder. The last thing that is done in a process that ends by itself.
  void Finish();
  // Once, when the library is loaded: children that the C library forks are recorded, too.
  static void WatchForks();
  // The recording of this process; null when nothing is recorded. Made on first use.
  Recording* Active();

 private:
  // calls.cc
  void FillEnter(Recording& rec, const preload::Call& call, format::CallEnter& enter,
                 class Blob& blob);
  // Of a call of which nothing is to be read but its arguments. Returns the event's number.
  uint64_t WritePlainEnter(Recording& rec, const preload::Call& call);
  void RecordPlain(Recording& rec, preload::Call& call);
  void WriteLeave(Recording& rec, const preload::Call& call, uint64_t enter_seq);
  uint32_t HandleWire(Recording& rec, HandleKind kind, uint64_t value);

  // process_groups.cc
  void RecordNewGroup(Recording& rec, preload::GroupCall& call);

  // mpi.cc
  void RecordMpi(Recording& rec, preload::Call& call);
  void RecordMpiPoll(Recording& rec, preload::Call& call);

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
  void EndGroup(Recording& rec, ThreadState& state, uint64_t result);
  void WriteResults(Recording& rec, const PendingOp& op);
  void WriteAll(Recording& rec, OpList list);
  void DropAll(Recording& rec, OpList list);
  // Operations that were given up before they had results.
  void WriteAborted(Recording& rec, OpList list);
  void GiveUp(Recording& rec, const preload::Call& call, Communicator& comm);

  // comm_lifecycle.cc
  void RecordLifecycle(Recording& rec, preload::Call& call);
  void CreatedAfter(Recording& rec, const preload::Call& call, Communicator* parent);
  void ResolvePending(Recording& rec, ThreadState& state, uint32_t parent, uint64_t handle);
  bool Created(Recording& rec, const PendingComm& made);

  const Config config_;
  const LogFactory make_log_;
  preload::ConnectionLayer* connections_ = nullptr;
  preload::FolderLayer* folders_ = nullptr;
  std::atomic<preload::PipeTable*> pipes_{nullptr};
  std::atomic<bool> has_no_pipes_{false};
  // Fork children and tests start from nothing again.
  enum State : int { kNew, kBeingMade, kReady, kOff };
  std::atomic<int> state_{kNew};
  std::atomic<Recording*> recording_{nullptr};
  Recording* forked_from_ = nullptr;  // of the process that has forked this one
};

// The name in an ncclConfig_t (null allowed); empty if it has none.
std::string_view ConfigName(uint64_t address);

// Fills in hash, statistics and, if `keep` and the level says so, the payload of `tensor`.
// `series`: SeriesNumber of what it may differ little from.
void FillDigest(Recording& rec, std::span<const std::byte> bytes, bool keep, format::Tensor& tensor,
                uint32_t series = 0);
// The same for memory of the processor's, if there is any and the level asks for digests.
void DigestNow(Recording& rec, const preload::BufferUse& use, bool keep, format::Tensor& tensor,
               uint32_t series = 0);

}  // namespace deja::recorder

#endif  // DEJA_RECORDER_CORE_RECORDER_ENGINE_H_
