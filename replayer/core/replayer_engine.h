// ReplayerEngine: answers the program's calls from a recording and compares what it does with what
// was recorded.
//
// One per process, made on first use, never destroyed. In the process that is the replayed rank it
// serves everything, and so it does in a child whose recording the trace has (children.cc finds it
// by the child's name). Other children run live, kept inside the scratch folder; what they ask
// about themselves they are told by what their parent knows.
#ifndef DEJA_REPLAYER_CORE_REPLAYER_ENGINE_H_
#define DEJA_REPLAYER_CORE_REPLAYER_ENGINE_H_

#include <sys/types.h>

#include <atomic>
#include <string>
#include <string_view>
#include <vector>

#include "preload/engine/engine.h"
#include "replayer/core/session.h"
#include "replayer/files/input_files.h"
#include "replayer/files/machine_files.h"
#include "replayer/files/overlay.h"
#include "replayer/files/served_file.h"
#include "replayer/files/served_folders.h"
#include "replayer/forks/children.h"
#include "replayer/nccl/process_groups.h"
#include "replayer/sockets/connections.h"
#include "replayer/sockets/fifo_watch.h"

namespace deja::replayer {

class LockOrder;

class ReplayerEngine final : public preload::Engine {
 public:
  // Null if the environment does not say what to replay.
  static ReplayerEngine* Create();
  // Once all libraries are loaded: the program's allocator may be asked.
  void OnLoaded();

  void OnNcclCall(preload::Call& call) override;
  void OnMpiCall(preload::Call& call) override;
  void OnCurandCall(preload::Call& call) override;
  void OnUnknownMpiCall(const char* name, const char* because) override;
  [[nodiscard]] preload::GroupMode ModeOfGroups() const override {
    return preload::GroupMode::kReplaying;
  }
  void OnGroupCall(preload::GroupCall& call) override;
  void OnGroupDone(const preload::GroupEnd& end) override;
  void OnStoreCall(preload::StoreCall& call) override;
  void OnNotRecorded(std::string_view what, bool may_be) override;
  void OnFilter(const char* call, bool& for_all) override;
  void OnInput(preload::InputCall& call) override;
  uint64_t OnStep(uint64_t step) override;
  void OnNote(std::string_view text) override;
  [[nodiscard]] bool HasHiddenFilter() const override { return true; }  // the fence
  void OnSnapshot(const preload::SnapshotCall& call) override;
  void OnThreadStart() override;
  void OnThreadEnd() override;
  void OnCrash(int signal, const siginfo_t* info, void* ucontext) override;
  void OnExit(int code, preload::ExitHow how) override;
  void OnForkChild() override;
  const char* MapPath(int dirfd, const char* path, preload::FileUse use,
                      std::span<char> buffer) override;
  size_t UnmapPath(char* path, size_t size) override;
  preload::FolderLayer* Folders() override { return &folders_; }
  void OnStat(const char* mapped, int fd, struct stat& info) override;
  preload::FdObject* OnOpened(int dirfd, const char* path, int fd, int flags) override;
  int OnOpenRefused(int dirfd, const char* path, int flags) override;
  bool MayConnect(int fd, const void* address, uint32_t length) override;
  bool MayKill(int pid, int signal) override;
  int MapPid(int pid) override;
  int64_t OnClock(format::ClockSource source, int64_t live_ns) override;
  int64_t DeadlineOffsetNs(int clock, int64_t deadline_ns) override;
  preload::ConnectionLayer* Connections() override {
    if (connections_ != nullptr) return connections_;
    return &unrecorded_connections_;
  }
  int OnChildMade(uint32_t number, int pid) override;
  int RecordedChildPid(uint32_t number) override;
  void BeforeWait(preload::WaitCall& call) override;
  void AfterWait(preload::WaitCall& call) override;
  void OnAcquire(preload::AcquireCall& call) override;
  void OnPoll(preload::PollCall& call) override;
  void OnCount(preload::CountCall& call) override;
  void OnPipeRead(preload::OwnPipe& pipe, preload::Transfer& transfer) override;
  void OnPipeWrite(preload::OwnPipe& pipe, preload::Transfer& transfer) override;
  preload::PipeTable* Pipes() override { return pipes_; }
  void OnLock(preload::LockCall& call) override;
  void OnOnceBegins(preload::LockCall& call) override;

 private:
  void Begin();
  // Says that the fence refused a file of this machine.
  void SayRefused(int dirfd, const char* path);
  // In an image of the process that goes on (forks.h).
  void BecomeThisProcess(const std::string& scratch);
  [[nodiscard]] bool LeadsToRank(std::string_view name) const;
  // Of the rank that this process is, or belongs to.
  [[nodiscard]] std::string RankFolder(const char* scratch) const;
  int SkippedChild(uint32_t number) override;
  // This process is, or belongs to, another rank. Returns when its parent needs it.
  void BecomeCompanion(bool is_rank);
  void EndCompanions();
  // Restores the checkpoint. Without the guard.
  void StartLate();
  // Makes the session of a child, if the trace has its recording.
  void OpenChild(const char* scratch);
  std::string InputName(int dirfd, const char* path, bool& inside);
  bool IsOutside(int dirfd, const char* path);
  std::string OwnLinkTarget(int dirfd, const char* path);
  const char* MapFollowed(int dirfd, const char* path, preload::FileUse use,
                          std::span<char> buffer);
  const char* MapUnrecorded(int dirfd, const char* path, preload::FileUse use,
                            std::span<char> buffer);
  const char* MapInput(int dirfd, const char* path, preload::FileUse use, std::span<char> buffer);
  bool FindEntries(DIR* stream, const char* path, ServedFolders::Folder& folder);
  void ServeUnrecorded(preload::InputCall& call);
  void AwaitEnd(int pid) const;
  // Says once that this process asks the machine, because the trace has no recording of it.
  void ReportLive();
  void HideCreatedFiles();
  // The ends of the rank's own pipes that the process was born with.
  void AdoptPipes();
  // `option`: what would have allowed it; null: nothing does.
  void Refuse(const char* what, const char* target, const char* option);

  Session* session_ = nullptr;             // null in children that the trace does not have
  bool follows_parent_ = false;            // forked by one that is a companion, or may make some
  std::vector<pid_t> companions_;          // that this process has made
  const ReplayPlan* inherited_ = nullptr;  // of the process that forked this one
  std::atomic<bool> live_told_ = false;
  PidMap pids_;
  int root_pid_ = 0;                 // of the rank
  ProcessGroups* groups_ = nullptr;  // null where there is no session
  preload::PipeTable* pipes_ = nullptr;
  LockOrder* locks_ = nullptr;                // null: no order was recorded
  ServedConnections* connections_ = nullptr;  // null in children
  UnrecordedConnections unrecorded_connections_;
  Overlay overlay_;
  MachineServer machine_files_;
  InputServer input_files_;
  ServedFolders folders_;
  Report report_;
  bool at_first_step_ = false;  // or behind it
  bool allow_writes_ = false;
  bool allow_network_ = false;
  bool fenced_reads_ = false;
  std::atomic<int> refused_reads_{0};
  std::atomic<int> live_pid_{0};
  std::string forked_;  // name of the rank, if it is a forked child of the process that began
};

}  // namespace deja::replayer

#endif  // DEJA_REPLAYER_CORE_REPLAYER_ENGINE_H_
