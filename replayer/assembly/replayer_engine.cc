#include "replayer/assembly/replayer_engine.h"

#include <cerrno>
#include <csignal>
#include <string>

#include "common/env_vars.h"
#include "common/os/folder_names.h"
#include "preload/engine/engine.h"
#include "preload/hooks/process/spawn.h"
#include "preload/process/guard.h"
#include "preload/process/own_variables.h"
#include "preload/process/process_again.h"
#include "preload/process/process_name.h"
#include "replayer/assembly/open_session.h"
#include "replayer/core/ending.h"
#include "replayer/core/replay_variables.h"
#include "replayer/files/served_position.h"
#include "replayer/files/writer_share.h"
#include "replayer/forks/awaited_ends.h"
#include "replayer/forks/bystanders.h"
#include "replayer/forks/chosen_child.h"
#include "replayer/meet/collections.h"
#include "replayer/meet/stillness.h"
#include "replayer/process/claim.h"
#include "replayer/process/end_process.h"
#include "replayer/report/live_stack.h"
#include "replayer/report/live_trace.h"
#include "replayer/report/program_output.h"
#include "replayer/sockets/fifos.h"
#include "replayer/turns/turns.h"

namespace deja::replayer {

using preload::Guard;

ReplayerEngine::ReplayerEngine()
    : NcclReplayer(static_cast<Replayer&>(*this)),
      MpiReplayer(static_cast<Replayer&>(*this)),
      FileReplayer(static_cast<Replayer&>(*this)),
      SocketReplayer(static_cast<Replayer&>(*this)),
      InputReplayer(static_cast<Replayer&>(*this)),
      StepReplayer(static_cast<Replayer&>(*this)),
      ProcessReplayer(static_cast<Replayer&>(*this)),
      MeetingReplayer(static_cast<Replayer&>(*this)),
      LockReplayer(static_cast<Replayer&>(*this)) {}

ReplayerEngine* ReplayerEngine::Create() {
  const char* folder = Environment(env::kReplay);
  const char* scratch_folder = Environment(env::kScratch);
  if (folder == nullptr || scratch_folder == nullptr) return nullptr;
  auto* engine = new ReplayerEngine();  // never destroyed
  engine->scratch = scratch_folder;
  engine->report.Open(scratch_folder);
  engine->allow_writes = preload::OwnFlag(env::kAllowWrites);
  engine->allow_network = preload::OwnFlag(env::kAllowNetwork);
  engine->fenced_reads = preload::OwnFlag(env::kFencedReads);
  engine->FileReplayer::Open();
  engine->live_pid = OwnPid();
  if (IsChildChosen() || !Text(env::kForked).empty()) preload::EnterForkedChildrenAtOnce();
  Stillness::SetHaste(preload::OwnNumber(env::kHaste));
  ServedPosition::WatchForks();
  engine->MeetingReplayer::Open();
  if (!ClaimRank(scratch_folder, IsInDebugger())) {
    engine->root_pid = ClaimHolder(scratch_folder);
    engine->OpenChild();
    return engine;
  }
  engine->root_pid = OwnPid();
  if (const std::string name = Text(env::kReplayName); !name.empty())
    CallFolder(FolderAround(folder), name);
  SessionOptions options;
  options.folder = folder;
  options.scratch = scratch_folder;
  SetModes(options);
  engine->forked = Text(env::kForked);
  // What a forked rank was before is not the rank.
  options.is_before_fork = !engine->forked.empty();
  if (!options.is_before_fork) SetGoals(options);
  const Status shares = Turns::Open(Environment(env::kTurns));
  if (!shares) Say("sharing devices with other ranks: " + shares.error().message);
  engine->session = OpenSession(options);
  if (engine->session == nullptr) EndProcess(1);  // running on would prove nothing
  engine->report.Write(StartLine{.pid = OwnPid()});
  if (!engine->allow_writes) engine->HideCreatedFiles();
  engine->Begin();
  return engine;
}

void ReplayerEngine::Begin() {
  const ReplayPlan& plan = session->plan();
  images_ = new Forks(scratch, session->payloads());  // never destroyed
  session->stops().SetKeeper(
      [](deja_replay_thread& shown, uint64_t place, bool wanted, void* engine) {
        auto* self = static_cast<ReplayerEngine*>(engine);
        self->images_->Keep(shown, place, self->session->operations().MostOperations(), wanted);
      },
      this);
  ProcessReplayer::Begin();
  LearnModules();
  MeetingReplayer::Begin();
  LockReplayer::Begin();
  const SessionOptions& options = session->options();
  std::string rank = options.child.empty() ? "" : RankFolder();
  if (rank.empty()) rank = options.folder;
  const Fifos fifos(plan, rank, scratch);
  for (const auto& [path, use] : fifos.paths())
    if (!use.made && !allow_writes) overlay().SeedFifo(path);
  SocketReplayer::Begin(fifos, rank, Pipes());
  NcclReplayer::Begin();
  FileReplayer::Begin();
  images_->SetListeners(
      {.forked = preload::StaySameProcess,
       .renumbered = [](void* engine) { static_cast<ReplayerEngine*>(engine)->Renumber(); },
       .woken = [](void* engine) { HoldClaim(static_cast<ReplayerEngine*>(engine)->scratch); },
       .context = this});
  if (session->progress().remaining() == 0) OnAllEventsMade(*session);
  if (AwaitsDebugger(options.child)) AwaitDebugger(scratch);
  deja_replay_stop(&deja_replay_state, kDejaStopReady);
  if (deja_replay_state.mute != 0) MuteOutput();
}

void ReplayerEngine::Renumber() {
  live_pid = OwnPid();
  root_pid = OwnPid();
  LockReplayer::Renumber(&Bystanders::NewNumber);
}

void ReplayerEngine::OnLoaded() {
  // A child's thread is made when it has something to write, if at all.
  const bool is_rank = session != nullptr && live_pid == root_pid;
  if (is_rank && !session->plan().HasCommunicators()) TakeWriterShare();
}

void ReplayerEngine::OnNotRecorded(std::string_view what, bool may_be,
                                   std::string_view /*function*/) {
  if (session != nullptr && !may_be) FailReplay(*session, session->Thread(), what, 0);
}

// The recording ends there. The program goes on by itself, inside the fence, to its own end.
void ReplayerEngine::OnFilter(const char* call, bool& for_all) {
  for_all = false;  // threads of the replay go on to be needed
  if (session == nullptr || OwnPid() != live_pid) return;
  LetProgramEnd(*session, std::string("its own seccomp filter refuses ") + call);
}

void ReplayerEngine::OnThreadEnd() {
  if (session == nullptr) return;
  session->progress().CountActivity();
  LockReplayer::EndThread();
  session->Find<Collections>()->EndThread(session->Thread());
  if (LiveTrace* live = session->live_trace()) live->EndThread();
}

void ReplayerEngine::OnCrash(int signal, const siginfo_t* info, void* ucontext) {
  if (session == nullptr) return;
  Guard guard;
  const RecordedEnd& end = session->plan().end();
  if (end.kind == EndKind::kCrash && end.signal == static_cast<uint32_t>(signal))
    AwaitOtherThreads();
  ReportCrash(*session, signal, info, ucontext);
}

// One that a signal ended may be further in a replay when it comes.
void ReplayerEngine::EndAsChild(int code) {
  const RecordedEnd& end = session->plan().end();
  if (end.kind == EndKind::kExit && end.exit_code == code) SayExits(scratch, true);
  const bool was_ended = end.kind != EndKind::kExit && session->plan().fate.signal != 0;
  if (was_ended && session->progress().AllConsumed()) AwaitSignal();
}

void ReplayerEngine::OnExit(int code, preload::ExitHow how) {
  // After vfork the child speaks with its parent's memory.
  if (session == nullptr || OwnPid() != live_pid) return;
  if (how == preload::ExitHow::kUnderscoreExit) AwaitOtherThreads();
  if (!session->options().child.empty() && how != preload::ExitHow::kExec) EndAsChild(code);
  ReportExit(*session, code, how);
  if (how == preload::ExitHow::kExec && live_pid == root_pid) GiveUpRank(scratch);
}

void ReplayerEngine::OnExec(const preload::NextProgram& next) {
  if (!next.records_itself() && !scratch.empty()) SayRunsLive(scratch, true);
  OnExit(0, preload::ExitHow::kExec);
}

}  // namespace deja::replayer

namespace deja::preload {

namespace {

replayer::ReplayerEngine* g_replayer = nullptr;

}  // namespace

bool CreateEngine(Engine& engine) {
  g_replayer = replayer::ReplayerEngine::Create();
  if (g_replayer != nullptr) engine = EngineOf(*g_replayer);
  return g_replayer != nullptr;
}

// The fence must stand before anything of the program's runs, not at its first hooked call.
__attribute__((constructor)) static void StartReplay() {
  {
    const Guard guard;
    (void)OwnProcessName();
    HideOwnVariables();
  }
  if (GetEngine() == nullptr) return;
  const Guard guard;
  g_replayer->OnLoaded();
}

}  // namespace deja::preload
