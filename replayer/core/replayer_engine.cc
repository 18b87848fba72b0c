#include "replayer/core/replayer_engine.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <climits>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <new>
#include <string>
#include <string_view>

#include "api/libc_table.h"
#include "api/nccl_table.h"
#include "common/env_vars.h"
#include "common/os/folder_entries.h"
#include "common/os/folder_names.h"
#include "format/layout/child_folder.h"
#include "include/compat/curand.h"
#include "include/compat/nccl.h"
#include "preload/files/absolute_path.h"
#include "preload/hooks/descriptors/own_pipes.h"
#include "preload/hooks/process/spawn.h"
#include "preload/meet/connection_names.h"
#include "preload/meet/lock_order.h"
#include "preload/process/guard.h"
#include "preload/process/own_variables.h"
#include "preload/process/process_again.h"
#include "preload/process/process_lineage.h"
#include "preload/process/process_name.h"
#include "preload/process/threads.h"
#include "replayer/core/claim.h"
#include "replayer/core/ordered.h"
#include "replayer/core/replay_variables.h"
#include "replayer/files/writer_share.h"
#include "replayer/fold/turns.h"
#include "replayer/forks/chosen_child.h"
#include "replayer/meet/lock_order.h"
#include "replayer/meet/meeting_list.h"
#include "replayer/meet/meetings.h"
#include "replayer/meet/pipe_order.h"
#include "replayer/mpi/mpi_serve.h"
#include "replayer/nccl/generators.h"
#include "replayer/report/ending.h"
#include "replayer/report/live_stack.h"
#include "replayer/report/live_trace.h"
#include "replayer/report/program_output.h"

namespace deja::replayer {

using api::ApiClass;
using api::LibcApi;
using preload::Call;
using preload::Guard;

namespace {

// The descriptor of this process that `path` names (/dev/stderr, /dev/fd/3); -1: none.
int OwnDescriptor(const char* path) {
  constexpr std::string_view kStandard[] = {"/dev/stdin", "/dev/stdout", "/dev/stderr"};
  const std::string_view name = path;
  for (int i = 0; i < 3; ++i)
    if (name == kStandard[i]) return i;
  for (const std::string_view folder : {"/dev/fd/", "/proc/self/fd/"}) {
    if (!name.starts_with(folder)) continue;
    int number = -1;
    const char* const end = name.data() + name.size();
    const auto [at, error] = std::from_chars(name.data() + folder.size(), end, number);
    return error == std::errc() && at == end ? number : -1;
  }
  return -1;
}

}  // namespace

ReplayerEngine* ReplayerEngine::Create() {
  const char* folder = Environment(env::kReplay);
  const char* scratch = Environment(env::kScratch);
  if (folder == nullptr || scratch == nullptr) return nullptr;
  auto* engine = new ReplayerEngine();  // never destroyed
  engine->report_.Open(scratch);
  engine->allow_writes_ = preload::OwnFlag(env::kAllowWrites);
  engine->allow_network_ = preload::OwnFlag(env::kAllowNetwork);
  engine->fenced_reads_ = preload::OwnFlag(env::kFencedReads);
  engine->overlay_.Open(scratch);
  engine->live_pid_ = OwnPid();
  if (IsChildChosen() || !Text(env::kForked).empty()) preload::EnterForkedChildrenAtOnce();
  (void)IsInDebugger();
  ServedPosition::WatchForks();
  engine->pipes_ = preload::PipeTable::Map(std::string(scratch) + kPipesFile);
  engine->AdoptPipes();
  if (!ClaimRank(scratch)) {
    engine->root_pid_ = ClaimHolder(scratch);
    engine->OpenChild(scratch);
    return engine;
  }
  engine->root_pid_ = OwnPid();
  if (const std::string name = Text(env::kReplayName); !name.empty())
    CallFolder(FolderAround(folder), name);
  SessionOptions options;
  options.folder = folder;
  options.scratch = scratch;
  SetModes(options);
  engine->forked_ = Text(env::kForked);
  // What a forked rank was before is not the rank.
  options.is_before_fork = !engine->forked_.empty();
  if (!options.is_before_fork) SetGoals(options);
  const Status shares = Turns::Open(Environment(env::kTurns));
  if (!shares) Say("sharing devices with other ranks: " + shares.error().message);
  engine->session_ = Session::Open(options);
  if (engine->session_ == nullptr) Session::EndProcess(1);  // running on would prove nothing
  engine->report_.Write(StartLine{.pid = OwnPid()});
  if (!engine->allow_writes_) engine->HideCreatedFiles();
  engine->Begin();
  return engine;
}

void ReplayerEngine::OnLoaded() {
  // A child's thread is made when it has something to write, if at all.
  const bool is_rank = session_ != nullptr && live_pid_ == root_pid_;
  if (is_rank && !session_->plan().HasCommunicators()) TakeWriterShare();
}

void ReplayerEngine::HideCreatedFiles() {
  const ReplayPlan& plan = session_->plan();
  std::map<uint32_t, std::string> last;  // of each thread
  for (const RecordedInput& input : plan.inputs()) {
    const std::string_view data = plan.Bytes(input.data);
    if (api::InputKindOf(input.api) == api::InputKind::kCreated) {
      last[input.thread] = data;
      // What was there first is not what the run made.
      const bool was_there =
          plan.FindFile(data) != nullptr && plan.files()[plan.FindFile(data)->front()].error == 0;
      if (!data.empty() && data[0] == '/' && !was_there) overlay_.HideCreated(std::string(data));
    } else if (input.api == static_cast<uint32_t>(LibcApi::kmkstemp) ||
               input.api == static_cast<uint32_t>(LibcApi::kmkdtemp)) {
      // The pattern came before, with six X where these letters are.
      std::string& path = last[input.thread];
      const size_t letters = path.rfind("XXXXXX");
      if (letters == std::string::npos || data.size() != 6) continue;
      path.replace(letters, data.size(), data);
      overlay_.HideCreated(path);
    }
  }
}

void ReplayerEngine::Begin() {
  const ReplayPlan& plan = session_->plan();
  const auto parent = static_cast<int>(plan.parent_pid);
  preload::SetRecordedPids(static_cast<int>(plan.pid), parent);
  pids_.Add(parent, static_cast<int>(syscall(SYS_getppid)));
  LearnModules();
  AnnounceMeetings(*session_);
  AnnouncePipes(*session_);
  locks_ = LockOrder::Make(*session_);
  preload::WantLockOrder(locks_ != nullptr);
  auto may_connect = [](void* engine, const void* address, uint32_t size) {
    return static_cast<ReplayerEngine*>(engine)->MayConnect(-1, address, size);
  };
  const SessionOptions& options = session_->options();
  std::string rank = options.child.empty() ? "" : RankFolder(options.scratch.c_str());
  if (rank.empty()) rank = options.folder;
  const Fifos fifos(plan, rank, options.scratch);
  for (const auto& [path, use] : fifos.paths())
    if (!use.made && !allow_writes_) overlay_.SeedFifo(path);
  connections_ =
      new ServedConnections(*session_, may_connect, this, fifos, rank, pipes_);  // never destroyed
  connections_->InstallInherited();
  groups_ = new ProcessGroups(*session_);  // never destroyed
  ServedFile::SetSession(session_);
  folders_.SetFind(
      [](DIR* stream, const char* path, ServedFolders::Folder& folder, void* engine) {
        return static_cast<ReplayerEngine*>(engine)->FindEntries(stream, path, folder);
      },
      [](const std::string& path, void* engine) {
        auto* self = static_cast<ReplayerEngine*>(engine);
        return self->input_files_.Inode(*self->session_, path);
      },
      this);
  session_->images().SetListeners(
      preload::StaySameProcess,
      [](void* engine) {
        auto* self = static_cast<ReplayerEngine*>(engine);
        self->BecomeThisProcess(self->session_->options().scratch);
      },
      this);
  if (session_->remaining() == 0) OnAllEventsMade(*session_);
  if (AwaitsDebugger(options.child)) AwaitDebugger(options.scratch);
  deja_replay_stop(&deja_replay_state, kDejaStopReady);
  if (deja_replay_state.mute != 0) MuteOutput();
}

void ReplayerEngine::OnNcclCall(Call& call) {
  if (session_ == nullptr) {  // a child of the rank: there is no job for it to be part of
    call.result = call.info->returns == api::ReturnKind::kString
                      ? reinterpret_cast<uint64_t>("not served in a child of the replayed rank")
                      : uint64_t{ncclSystemError};
    return;
  }
  const int saved_errno = errno;
  ThreadState& thread = session_->Thread();
  switch (call.info->klass) {
    case ApiClass::kCollective:
    case ApiClass::kP2p:
      ServeOperation(*session_, thread, call);
      break;
    case ApiClass::kGroup:
      ServeGroup(*session_, thread, call);
      break;
    case ApiClass::kQuery:
      ServeQuery(*session_, thread, call);
      break;
    default:
      ServeOrdered(*session_, thread, call);
      break;
  }
  errno = saved_errno;
}

void ReplayerEngine::OnCurandCall(Call& call) {
  if (session_ == nullptr) {  // a child that the trace does not have
    if (ServedComm::From(call.ArgOf(api::Role::kComm)) == nullptr) return call.invoke(call);
    call.result = CURAND_STATUS_NOT_INITIALIZED;  // its parent's
    return;
  }
  const int saved_errno = errno;
  ServeCurand(*session_, session_->Thread(), call);
  errno = saved_errno;
}

void ReplayerEngine::OnMpiCall(Call& call) {
  // In a child of the rank there is no job to be part of.
  if (session_ == nullptr) {
    call.result = static_cast<uint64_t>(preload::TheMpiAbi().error_other);
    return;
  }
  const int saved_errno = errno;
  ServeMpi(*session_, session_->Thread(), call);
  errno = saved_errno;
}

void ReplayerEngine::OnGroupCall(preload::GroupCall& call) {
  if (groups_ == nullptr) {  // a child of the rank that made no groups while it was recorded
    call.served = true;
    call.state = preload::GroupState::kRaised;
    call.error = "RuntimeError: not served in a child of the replayed rank";
    return;
  }
  const int saved_errno = errno;
  groups_->Serve(session_->Thread(), call);
  errno = saved_errno;
}

void ReplayerEngine::OnGroupDone(const preload::GroupEnd& end) {
  if (groups_ != nullptr) groups_->WaitForUnknown(session_->Thread(), end);
}

void ReplayerEngine::OnStoreCall(preload::StoreCall& call) {
  call.answer = preload::AnswerFrom::kNone;
  const int saved_errno = errno;
  if (groups_ != nullptr) groups_->ServeStore(session_->Thread(), call);
  errno = saved_errno;
}

void ReplayerEngine::OnNotRecorded(std::string_view what, bool may_be) {
  if (session_ != nullptr && !may_be) FailReplay(*session_, session_->Thread(), what, 0);
}

// The recording ends there. The program goes on by itself, inside the fence, to its own end.
void ReplayerEngine::OnFilter(const char*, bool& for_all) {
  for_all = false;  // threads of the replay go on to be needed
  LetProgramEnd();
}

void ReplayerEngine::OnUnknownMpiCall(const char* name, const char* because) {
  if (session_ != nullptr) RefuseMpi(*session_, session_->Thread(), name, because);
}

void ReplayerEngine::OnInput(preload::InputCall& call) {
  if (session_ == nullptr) return ServeUnrecorded(call);
  ServeInput(*session_, session_->Thread(), call);
}

void ReplayerEngine::ReportLive() {
  if (!preload::HasProcessName() || live_told_.exchange(true)) return;
  const preload::ProcessName& name = preload::OwnProcessName();
  // One that was killed at once had done nothing yet: there is nothing that could have been lost.
  if (inherited_ != nullptr) {
    const auto status = inherited_->StatusOf(static_cast<uint32_t>(name.recorded_pid));
    if (status && WIFSIGNALED(*status)) return;
  }
  report_.Write(ChildLiveLine{.name = name.path, .pid = OwnPid()});
}

// In a child of which nothing is recorded: it looked at nothing but who it is, or its recording is
// lost.
void ReplayerEngine::ServeUnrecorded(preload::InputCall& call) {
  if (api::InputKindOf(call.api) != api::InputKind::kIdentity) {
    ReportLive();
    return call.Real();
  }
  if (!preload::HasProcessName()) return call.Real();
  const preload::ProcessName& name = preload::OwnProcessName();
  const auto api = static_cast<api::LibcApi>(call.api);
  int value = 0;
  if (api == api::LibcApi::kgetpid || api == api::LibcApi::kgettid)
    value = name.recorded_pid;
  else if (api == api::LibcApi::kgetppid)
    value = name.recorded_parent;
  else if (inherited_ != nullptr && ServeIdentity(*inherited_, call))
    return;
  if (value == 0) return call.Real();
  call.result = value;
}

void ReplayerEngine::OnAcquire(preload::AcquireCall& call) {
  if (session_ == nullptr && preload::OwnNumber(env::kFromCheckpoint) != 0) return call.Real();
  if (session_ == nullptr) return ServeUnrecordedAcquire(overlay_.scratch(), call);
  ServeAcquire(*session_, session_->Thread(), call);
}

void ReplayerEngine::OnPoll(preload::PollCall& call) {
  if (session_ == nullptr) return call.Real();
  ServePoll(*session_, session_->Thread(), call);
}

void ReplayerEngine::OnCount(preload::CountCall& call) {
  if (session_ == nullptr) return call.Real();
  ServeCount(*session_, session_->Thread(), call);
}

void ReplayerEngine::OnPipeRead(preload::OwnPipe& pipe, preload::Transfer& transfer) {
  if (session_ == nullptr) return transfer.Real();
  ServePipeRead(*session_, session_->Thread(), pipe, transfer);
}

void ReplayerEngine::OnPipeWrite(preload::OwnPipe& pipe, preload::Transfer& transfer) {
  if (session_ == nullptr) return transfer.Real();
  ServePipeWrite(*session_, session_->Thread(), pipe, transfer);
}

void ReplayerEngine::AdoptPipes() {
  if (pipes_ == nullptr) return;
  ForEachEntry("/proc/self/fd", [this](const char* name, int folder) {
    const int fd = std::atoi(name);
    if (fd > STDERR_FILENO && fd != folder) preload::OwnPipe::Adopt(*pipes_, fd);
    return true;
  });
}

void ReplayerEngine::OnLock(preload::LockCall& call) {
  if (locks_ == nullptr) return call.real(call);
  const int saved_errno = errno;
  ThreadState* thread = nullptr;
  {
    const Guard guard;
    thread = &session_->Thread();
  }
  locks_->Serve(*thread, call);
  errno = saved_errno;
}

void ReplayerEngine::OnOnceBegins(preload::LockCall& call) {
  const Guard guard;
  call.runs = true;
  if (locks_ != nullptr) locks_->BeginOnce(session_->Thread(), call);
}

void ReplayerEngine::OnNote(std::string_view text) {
  if (session_ == nullptr) return;
  session_->CountActivity();
  if (LiveTrace* live = session_->live_trace()) live->Note(text);
}

void ReplayerEngine::OnSnapshot(const preload::SnapshotCall& call) {
  if (session_ == nullptr) return;
  const int saved_errno = errno;
  ServeSnapshot(*session_, session_->Thread(), call);
  errno = saved_errno;
}

void ReplayerEngine::OnThreadStart() {}

void ReplayerEngine::OnThreadEnd() {
  if (session_ == nullptr) return;
  session_->CountActivity();
  if (locks_ != nullptr) locks_->EndThread(session_->Thread());
  if (LiveTrace* live = session_->live_trace()) live->EndThread();
}

void ReplayerEngine::OnCrash(int signal, const siginfo_t* info, void* ucontext) {
  if (session_ == nullptr) return;
  Guard guard;
  ReportCrash(*session_, signal, info, ucontext);
}

void ReplayerEngine::OnExit(int code, preload::ExitHow how) {
  // After vfork the child speaks with its parent's memory.
  if (session_ == nullptr || OwnPid() != live_pid_) return;
  ReportExit(*session_, code, how);
  if (how == preload::ExitHow::kExec) GiveUpRank(session_->options().scratch);
}

void ReplayerEngine::Refuse(const char* what, const char* target, const char* option) {
  char text[512];
  snprintf(text, sizeof text, "%s %s was refused: a replay reaches nothing outside itself%s%s",
           what, target, option != nullptr ? "; to let it: deja replay … " : "",
           option != nullptr ? option : "");
  Say(text);
  RefusedLine line{.what = what, .target = target, .option = std::nullopt};
  if (option != nullptr) line.option = option;
  report_.Write(line);
}

// Where the fence, and not the file's mode, refuses it.
// A pipe or a terminal that the process has: the fence knows no name of it.
int ReplayerEngine::OnOpenRefused(int dirfd, const char* path, int flags) {
  const int own = OwnDescriptor(path);
  const int copy =
      own < 0 ? -1 : fcntl(own, (flags & O_CLOEXEC) != 0 ? F_DUPFD_CLOEXEC : F_DUPFD, 0);
  if (copy < 0) SayRefused(dirfd, path);
  return copy;
}

void ReplayerEngine::SayRefused(int dirfd, const char* path) {
  constexpr int kMostTold = 20;
  if (!fenced_reads_ || refused_reads_.load(std::memory_order_relaxed) >= kMostTold) return;
  const int saved_errno = errno;
  char name[PATH_MAX];
  const size_t size =
      preload::AbsolutePath(dirfd, path, std::span(name).first(sizeof name - 1)).size();
  name[size] = '\0';
  if (size != 0 && faccessat(AT_FDCWD, name, R_OK, AT_EACCESS) == 0 &&
      refused_reads_.fetch_add(1, std::memory_order_relaxed) < kMostTold)
    Say("reading " + std::string(name, size) +
        " was refused: the trace was not recorded here by you; deja replay --allow-read PATH lets "
        "the program read that file or folder");
  errno = saved_errno;
}

bool ReplayerEngine::MayConnect(int, const void* address, uint32_t length) {
  if (allow_network_) return true;
  if (address == nullptr || length < sizeof(sa_family_t)) return true;  // the call will fail
  preload::SocketAddress target;
  target.Set(address, length);
  const int family = target.family();
  // AF_UNSPEC dissolves an association; others are the kernel's own (netlink …).
  if (family != AF_INET && family != AF_INET6 && family != AF_UNIX) return true;
  Refuse("connecting to", preload::AddressText(target).text, "--allow-network");
  errno = ECONNREFUSED;
  return false;
}

int ReplayerEngine::MapPid(int pid) {
  const int number = pid < 0 ? -pid : pid;
  if (pid == 0 || pid == -1) return pid;
  int live = 0;
  if (preload::HasProcessName() && preload::OwnProcessName().recorded_pid == number)
    live = live_pid_;
  else
    live = pids_.Live(number);
  if (live == 0) return pid;
  return pid < 0 ? -live : live;
}

// A child that ended by itself in the recorded run does so before it is killed: what it does in its
// last moments, and how it ends, are not to depend on who is faster.
void ReplayerEngine::AwaitEnd(int pid) const {
  const int recorded = session_ == nullptr || pid <= 0 ? 0 : pids_.Recorded(pid);
  if (recorded == 0 || pids_.IsGone(recorded)) return;
  const auto status = session_->plan().StatusOf(static_cast<uint32_t>(recorded));
  if (!status || !WIFEXITED(*status)) return;
  constexpr timespec kPause{0, 2'000'000};
  constexpr int kMostPauses = 1000;
  siginfo_t info{};
  const bool is_patient = IsInDebugger();
  for (int i = 0; (i < kMostPauses || is_patient) && info.si_pid == 0; ++i) {
    if (waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOHANG | WNOWAIT) != 0) return;
    if (info.si_pid == 0) nanosleep(&kPause, nullptr);
  }
}

bool ReplayerEngine::MayKill(int pid, int signal) {
  if (signal == 0) return true;  // asks whether it is there
  const int own = OwnPid();
  if (pid == own || pid == live_pid_) {
    // Nothing can be said behind a signal that nobody can catch.
    if (signal == SIGKILL && session_ != nullptr) {
      report_.Write(CountedLine{session_->CountersNow()});
    }
    return true;
  }
  // The processes of the rank are its own: the others are not asked. A group of processes is that
  // of its leader.
  const int process = pid < 0 ? -pid : pid;
  const bool own_group = pid == 0 || (pid < -1 && getpgid(root_pid_) == process);
  if (pid > 0 && syscall(SYS_kill, pid, 0) != 0 && errno == ESRCH) return true;
  if (process > 1 && !own_group && preload::DescendsFrom(process, root_pid_)) {
    if (signal == SIGTERM || signal == SIGKILL) AwaitEnd(pid);
    return true;
  }
  char target[64];
  if (pid > 0)
    snprintf(target, sizeof target, "process %d", pid);
  else
    snprintf(target, sizeof target, "process group %d", -pid);
  Refuse("a signal to", target, nullptr);
  errno = EPERM;
  return false;
}

int64_t ReplayerEngine::OnClock(format::ClockSource source, int64_t live_ns) {
  const int saved_errno = errno;
  if (session_ == nullptr) {
    ReportLive();
    errno = saved_errno;
    return live_ns;
  }
  const int64_t told = ServeClock(*session_, session_->Thread(), source, live_ns);
  errno = saved_errno;
  return told;
}

int64_t ReplayerEngine::DeadlineOffsetNs(int clock, int64_t deadline_ns) {
  return session_ == nullptr ? 0
                             : DeadlineOffset(*session_, session_->Thread(), clock, deadline_ns);
}

}  // namespace deja::replayer

namespace deja::preload {

Engine* CreateEngine() {
  return replayer::ReplayerEngine::Create();
}

// The fence must stand before anything of the program's runs, not at its first hooked call.
__attribute__((constructor)) static void StartReplay() {
  {
    const Guard guard;
    (void)OwnProcessName();
    HideOwnVariables();
  }
  auto* engine = static_cast<replayer::ReplayerEngine*>(GetEngine());
  if (engine == nullptr) return;
  const Guard guard;
  engine->OnLoaded();
}

}  // namespace deja::preload
