#include "replayer/core/ending.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <climits>
#include <csignal>
#include <ctime>
#include <span>

#include "common/runtime/clock_ns.h"
#include "common/runtime/futex.h"
#include "preload/process/guard.h"
#include "preload/process/process_name.h"
#include "replayer/process/busy_threads.h"
#include "replayer/process/end_process.h"
#include "replayer/process/own_thread.h"
#include "replayer/report/live_stack.h"
#include "replayer/report/live_trace.h"
#include "replayer/turns/turns.h"

namespace deja::replayer {
namespace {

constexpr uint64_t kTickNs = 20'000'000;
constexpr uint64_t kHourNs = uint64_t{3600} * 1'000'000'000;
constexpr uint64_t kQuietNs = 100'000'000;       // nothing moves for so long: the end is reached
constexpr uint64_t kPatienceNs = 2'000'000'000;  // or so long after the last recorded event
constexpr uint64_t kStallNs = 5'000'000'000;     // nothing moves, and something is still to come
constexpr uint64_t kCatchUpNs = 1'000'000'000;   // or so long while a thread that ends it waits

std::atomic<bool> g_watching{false};
std::atomic<int> g_watcher{0};  // thread id; 0: there is none yet
std::atomic<bool> g_ends_with_child{false};
std::atomic<bool> g_ends_by_itself{false};
std::atomic<bool> g_exit_reported{false};
std::atomic<SignalledChild*> g_signalled_child{nullptr};
std::atomic<uint32_t> g_parked{0};
std::atomic<uint32_t> g_show_end{0};  // 1: a parked thread shall stop in gdb; a futex word

// std's waits are cancellation points, and the call that a parked thread stands in is none.
void WaitOn(std::atomic<uint32_t>& word, uint32_t value, uint64_t ns) {
  FutexWaitNs(word, value, ns, FutexScope::kProcess);
}

// Whether the program does anything, calls that reach the engine or CPU time; or is kept from it by
// other ranks.
class Motion {
 public:
  explicit Motion(Session& session) : session_(session) { Sample(); }

  void Sample() {
    const uint64_t wall = ClockNs(CLOCK_MONOTONIC);
    const uint64_t own = ClockNs(CLOCK_THREAD_CPUTIME_ID);
    const uint64_t cpu = ClockNs(CLOCK_PROCESS_CPUTIME_ID) - own - session_.payloads().CpuNs();
    const uint64_t events = session_.progress().activity();
    const bool busy = cpu > cpu_ && wall > wall_ && (cpu - cpu_) * 20 > wall - wall_;
    const Turns* turns = Turns::OfRank();
    waits_for_others_ = turns != nullptr && turns->WaitsForOthers();
    if (events != events_ || busy || waits_for_others_) last_motion_ = wall;
    if (last_motion_ == 0) last_motion_ = wall;
    wall_ = wall;
    cpu_ = cpu;
    events_ = events;
  }
  [[nodiscard]] bool waits_for_others() const { return waits_for_others_; }
  [[nodiscard]] uint64_t QuietNs() const { return wall_ - last_motion_; }
  [[nodiscard]] uint64_t wall() const { return wall_; }

 private:
  Session& session_;
  uint64_t wall_ = 0;
  uint64_t cpu_ = 0;
  uint64_t events_ = 0;
  uint64_t last_motion_ = 0;
  bool waits_for_others_ = false;
};

using ParkedThreads = std::array<ParkedPart, std::size(decltype(deja_replay_state.threads){})>;

// Those that are parked, at the beginning of `out`.
std::span<const ParkedPart> ListParked(ParkedThreads& out) {
  const deja_replay_state_t& state = deja_replay_state;
  size_t count = 0;
  for (uint32_t i = 0; i < std::min<uint32_t>(state.thread_count, std::size(state.threads)); ++i) {
    const deja_replay_thread& thread = state.threads[i];
    if (thread.parked == 0) continue;
    ParkedPart& part = out[count++];
    part.thread = thread.name;
    part.api = thread.api;
    if (thread.comm != 0) part.comm = thread.comm - 1;
    part.comm_seq = thread.comm_seq;
    part.entered = thread.parked == 1;
  }
  return std::span(out).first(count);
}

// A child is ended as it was, so that its parent's wait has an end. If the process that ended it
// does so again, that is its end; otherwise it ends itself.
[[noreturn]] void EndChild(Session& session) {
  const RecordedEnd& end = session.plan().end();
  const format::ProcessFate& fate = session.plan().fate;
  const uint32_t signal = end.kind == EndKind::kCrash ? end.signal : fate.signal;
  std::atomic<uint32_t> never{0};
  if (signal != 0) {
    if (SignalledChild* child = g_signalled_child.load()) child->AwaitSignal();
    syscall(SYS_kill, syscall(SYS_getpid), signal);
    WaitOn(never, 0, kPatienceNs);
  }
  EndProcess(fate.known && fate.exit_code >= 0 ? fate.exit_code : 0);
}

// The end of the recording, as a result: reached, or the program hangs before it.
[[noreturn]] void End(Session& session, const char* how, std::string_view text) {
  ParkedThreads parked;
  session.report().Write(EndLine{.how = how,
                                 .text = text,
                                 .counters = session.divergences().CountersNow(),
                                 .parked = ListParked(parked)});
  if (!session.options().child.empty()) EndChild(session);
  if (deja_replay_state.watched != 0 && g_parked.load() != 0) {
    // gdb shall show a thread of the program; that one ends the process afterwards.
    g_show_end.store(1);
    FutexWake(g_show_end, INT_MAX);
    for (;;) pause();
  }
  if (deja_replay_state.watched != 0) {
    // The program is in calls that are not recorded, or computes: gdb shows its first thread.
    ThreadState none;
    session.stops().Stop(none, kDejaStopEnd, text, {}, 0);
  }
  EndProcess(0);
}

class Watcher {
 public:
  explicit Watcher(Session& session) : session_(session), motion_(session) {}

  void Run() {
    const ReplayPlan& plan = session_.plan();
    const bool by_itself = plan.end().HappensByItself(plan.pid);
    const uint64_t started = motion_.wall();
    uint64_t complete_since = 0;
    const uint64_t patience = kStallNs + (by_itself ? RecordedWaitNs() : 0);
    for (;;) {
      WaitOn(never_, 0, kTickNs);
      if (g_ends_by_itself.load()) return;
      if (g_ends_with_child.load()) continue;
      motion_.Sample();
      const bool needed = session_.progress().IsNeeded() && motion_.QuietNs() < kStallNs;
      if (needed || motion_.waits_for_others()) {
        complete_since = 0;
        continue;
      }
      SignalledChild* child = g_signalled_child.load();
      if (child != nullptr && session_.progress().AllConsumed()) child->OnAllMade();
      // A thread may leave random bytes unasked for; then nothing moving for long is the end.
      if (session_.progress().AllConsumed() ||
          (session_.progress().remaining() == 0 && motion_.QuietNs() >= kStallNs)) {
        if (complete_since == 0) complete_since = motion_.wall();
      }
      if (!by_itself && complete_since != 0 && !session_.options().is_before_fork) {
        // A program that still has something to receive may take its time. So may one that a loaded
        // machine does not let run.
        const bool quiet = motion_.QuietNs() >= kQuietNs &&
                           session_.progress().transfers_left() == 0 && !IsAnotherThreadBusy();
        const bool enough = motion_.wall() - complete_since >= kPatienceNs;
        // In gdb the user decides how long to look at a program that still runs.
        if (quiet || (enough && deja_replay_state.watched == 0))
          End(session_, "reached", "the end of the recording");
      }
      if (g_parked.load() != 0 && motion_.QuietNs() >= patience &&
          motion_.wall() - started >= patience)
        Stalled(by_itself);
    }
  }

 private:
  // How long the recorded process took from its last event to its end (a watchdog's timeout …).
  uint64_t RecordedWaitNs() const {
    uint64_t last = 0;
    for (const RecordedCall& call : session_.plan().calls()) last = std::max(last, call.time_ns);
    const uint64_t end = session_.plan().end().time_ns;
    return end > last ? end - last : 0;
  }

  [[noreturn]] void Stalled(bool by_itself) {
    std::string text;
    if (session_.options().is_before_fork) {
      text = "the process that forked the rank hangs before it does";
    } else if (!by_itself && session_.progress().remaining() == 0) {
      End(session_, "reached", "the end of the recording");
    } else if (session_.progress().remaining() != 0) {
      text = "the program hangs, and " + std::to_string(session_.progress().remaining()) +
             " recorded calls have not been made";
    } else {
      text = std::string("the recorded run ended with ") + deja_replay_state.end_text +
             "; the replay waits, and that does not happen";
    }
    End(session_, "stalled", text);
  }

  Session& session_;
  Motion motion_;
  std::atomic<uint32_t> never_{0};
};

void StartWatching(Session& session) {
  if (g_watching.exchange(true)) return;
  StartOwnThread([&session] {
    g_watcher.store(static_cast<int>(syscall(SYS_gettid)));
    Watcher(session).Run();
  });
}

// What a process ends with is what its last thread ends with, if none ends it for all.
void AwaitWatchersEnd() {
  constexpr int kMostTicks = 100;
  std::atomic<uint32_t> never{0};
  const long process = syscall(SYS_getpid);
  for (int i = 0; g_watching.load() && i < kMostTicks; ++i) {
    const int watcher = g_watcher.load();
    if (watcher != 0 && syscall(SYS_tgkill, process, watcher, 0) != 0) return;
    WaitOn(never, 0, kTickNs);
  }
}

}  // namespace

void Park(Session& session, ThreadState& thread, std::string_view api, uint32_t comm,
          uint64_t comm_seq, const RecordedCall* entered) {
  const RecordedEnd& end = session.plan().end();
  const std::string name(api);
  session.stops().Enter(thread, name.c_str(), comm, comm_seq,
                        entered != nullptr ? entered->stack : 0);
  if (thread.slot != kNone)
    deja_replay_state.threads[thread.slot].parked = entered != nullptr ? 1 : 2;
  session.progress().CountActivity();
  g_parked.fetch_add(1);
  // The recorded thread died inside this very call: there is nothing to wait for.
  if (entered != nullptr && end.kind == EndKind::kCrash && end.thread != kNone &&
      end.thread == thread.recorded && session.progress().RemainingOf(thread.recorded) == 0)
    End(session, "reached",
        std::string("the recorded process died inside this call: ") + deja_replay_state.end_text);
  StartWatching(session);
  while (g_show_end.load() == 0) WaitOn(g_show_end, 0, kHourNs);
  session.stops().Stop(thread, kDejaStopEnd, "the end of the recording", {},
                       entered != nullptr ? entered->stack : 0);
  EndProcess(0);
}

void EndWithChild() {
  g_ends_with_child.store(true);
}

void LetProgramEnd(Session& session, std::string_view why) {
  session.report().Write(UnseenLine{.why = why});
  g_ends_by_itself.store(true);
  session.payloads().StopReadingAhead();
  AwaitWatchersEnd();
}

void SetSignalledChild(SignalledChild* child) {
  g_signalled_child.store(child);
}

SignalledChild* SignalledChildOfThisProcess() {
  return g_signalled_child.load();
}

void ForgetEnding() {
  g_ends_by_itself.store(false);
  g_ends_with_child.store(false);
  g_watching.store(false);
  g_watcher.store(0);
  g_exit_reported.store(false);
  g_parked.store(0);
  g_show_end.store(0);
}

void OnAllEventsMade(Session& session) {
  const RecordedEnd& end = session.plan().end();
  if (!end.HappensByItself(session.plan().pid)) StartWatching(session);
}

namespace {

// How far the other threads get before one ends the process is a matter of scheduling. They may go
// on to where they were when the recorded process ended, so that every replay compares the same.
// Async-signal-safe.
void LetOthersCatchUp(Session& session) {
  std::atomic<uint32_t> never{0};
  Motion motion(session);
  const uint64_t own = session.progress().RemainingOf(session.plan().end().thread);
  while ((session.progress().remaining() > own || session.progress().IsNeeded()) &&
         motion.QuietNs() < kCatchUpNs) {
    WaitOn(never, 0, kTickNs);
    motion.Sample();
  }
}

// Recorded SIGCHLDs that the calling thread has not got. 0 if it has made fewer meetings than the
// recorded one: those with a launcher do not come again.
uint64_t MissedSignals(Session& session) {
  Progress& progress = session.progress();
  const uint32_t recorded = session.Thread().recorded;
  if (recorded == kNone) return 0;
  const bool has_met_all =
      progress.MeetingsOf(recorded) == session.plan().threads()[recorded].meetings;
  return has_met_all ? progress.child_signals().MissedAtExit(recorded) : 0;
}

}  // namespace

void ReportExit(Session& session, int code, preload::ExitHow how) {
  if (g_exit_reported.exchange(true)) return;
  if (session.plan().end().kind == EndKind::kExit) LetOthersCatchUp(session);
  ExitLine line;
  const bool known = code != preload::kExitCodeUnknown;
  if (LiveTrace* live = session.live_trace(); live != nullptr && known)
    live->Exit(code, static_cast<uint32_t>(how));
  if (known) line.code = code;
  line.how = static_cast<uint32_t>(how);
  // A process goes on after exec.
  const uint64_t missed = how == preload::ExitHow::kExec ? 0 : MissedSignals(session);
  if (missed != 0) line.missed_signals = missed;
  line.counters = session.divergences().CountersNow();
  session.report().Write(line);
  if (deja_replay_state.watched != 0 && deja_replay_state.stop_exit != 0)
    session.stops().Stop(session.Thread(), kDejaStopEnd,
                         "the program ends with exit" +
                             (known ? " " + std::to_string(code) : std::string()) +
                             "; recorded: " + deja_replay_state.end_text,
                         {}, 0);
}

void ReportCrash(Session& session, int signal, const siginfo_t* info, void* ucontext) {
  const RecordedEnd& end = session.plan().end();
  if (end.kind == EndKind::kCrash && end.signal == static_cast<uint32_t>(signal))
    LetOthersCatchUp(session);
  CrashFrames frames;
  CrashStack(ucontext, frames);
  CrashLine line;
  line.pid = preload::OwnProcessName().recorded_pid;
  line.signal = signal;
  if (info != nullptr) {
    line.code = info->si_code;
    line.address = reinterpret_cast<uint64_t>(info->si_addr);
  }
  line.counters = session.divergences().CountersNow();
  line.thread = preload::Self().name;
  std::array<FramePart, format::kMaxStackFrames> parts;
  size_t count = 0;
  for (const format::StackFrame& frame : frames) {
    if (count == parts.size()) break;
    const CrashPlace place = PlaceOf(frame);
    if (place.path != nullptr) parts[count].module = place.path;
    parts[count++].offset = place.offset;
  }
  line.frames = std::span(parts).first(count);
  session.report().Write(line);
}

void FailReplay(Session& session, ThreadState& thread, std::string_view message,
                uint32_t recorded_stack) {
  session.report().Write(
      FailedLine{.message = message, .counters = session.divergences().CountersNow()});
  session.stops().Stop(thread, kDejaStopEnd, message, {}, recorded_stack);
  EndProcess(1);
}

}  // namespace deja::replayer
