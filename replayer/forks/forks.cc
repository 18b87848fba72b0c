#include "replayer/forks/forks.h"

#include <linux/futex.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <ctime>
#include <iterator>

#include "common/env_vars.h"
#include "common/runtime/clock_ns.h"
#include "common/runtime/errno_keeper.h"
#include "preload/process/own_variables.h"
#include "replayer/core/stops.h"
#include "replayer/forks/bystanders.h"
#include "replayer/forks/fork_folder.h"
#include "replayer/report/program_output.h"
#include "replayer/report/report.h"

namespace deja::replayer {
namespace {

constexpr uint64_t kFree = 64;   // images that are made whatever they cost
constexpr uint64_t kShare = 20;  // and then one when the last one's cost is 1/20 of the time since
constexpr char kName[] = "deja-image";  // gdb/deja_gdb/images.py looks for it
constexpr size_t kNameSize = 16;

pid_t Parent() {
  return static_cast<pid_t>(syscall(SYS_getppid));
}

bool IsPowerOfTwo(uint64_t n) {
  return (n & (n - 1)) == 0;
}

// The step to which gdb has sent the program; false: to none.
bool Goal(uint64_t& step) {
  const deja_replay_state_t& state = deja_replay_state;
  if (state.stop_step != 0) {
    step = state.stop_step - 1;
    return true;
  }
  step = state.stop_place >> 1;
  return (state.stop_place & 1) != 0;
}

}  // namespace

bool Forks::IsDue(uint64_t place, bool wanted) const {
  const deja_replay_state_t& state = deja_replay_state;
  if (state.keep_images == 0) return false;
  if (wanted) return true;
  const bool is_step = (place & 1) != 0;
  if (!is_step && state.has_step != 0) return false;
  // Closer and closer before the goal: from there one goes back in small steps.
  uint64_t goal = 0;
  if (is_step && Goal(goal) && goal >= place >> 1 && IsPowerOfTwo(goal - (place >> 1))) return true;
  return made_ < kFree || ClockNs(CLOCK_MONOTONIC) - last_ns_ >= kShare * cost_ns_;
}

Reason Forks::Prepare() {
  if (preload::OwnFlag(env::kAllowWrites)) return Reason::Of("it writes to the files themselves");
  if (syscall(SYS_gettid) != syscall(SYS_getpid))
    return Reason::Of("its steps are on another thread");
  payloads_.StopReadingAhead();
  return files_.Note(scratch_);
}

pid_t Forks::Fork() const {
  int* tid = nullptr;
  prctl(PR_GET_TID_ADDRESS, &tid);
  unsigned long flags = CLONE_PARENT | CLONE_UNTRACED | SIGCHLD;
  if (tid != nullptr) flags |= CLONE_CHILD_SETTID | CLONE_CHILD_CLEARTID;
  void* robust = nullptr;
  size_t robust_size = 0;
  syscall(SYS_get_robust_list, 0, &robust, &robust_size);
  const auto pid = static_cast<pid_t>(syscall(SYS_clone, flags, nullptr, nullptr, tid, 0));
  if (pid != 0) return pid;
  if (listeners_.forked != nullptr) listeners_.forked();
  if (robust != nullptr) syscall(SYS_set_robust_list, robust, robust_size);
  return 0;
}

void Forks::Remember(pid_t pid) {
  deja_replay_state_t& state = deja_replay_state;
  if (state.image_count == std::size(state.images)) GiveOneUp();
  state.images[state.image_count++] = {pid, 0, state.image_number, state.image_places};
}

// The one without which the gap is small, seen from here.
void Forks::GiveOneUp() const {
  deja_replay_state_t& state = deja_replay_state;
  deja_replay_image* images = state.images;
  const uint32_t last = state.image_count - 1;
  uint32_t worst = last;
  double least = 0;
  for (uint32_t i = 1; i < last; ++i) {
    if (images[i].pinned != 0) continue;
    const auto gap = static_cast<double>(images[i + 1].places - images[i - 1].places);
    const double seen = gap / static_cast<double>(state.image_places - images[i].places + 1);
    if (worst != last && seen >= least) continue;
    worst = i;
    least = seen;
  }
  syscall(SYS_kill, images[worst].pid, SIGKILL);
  RemoveKeptFolder(scratch_, images[worst].number);
  std::copy(images + worst + 1, images + state.image_count, images + worst);
  --state.image_count;
}

void Forks::Keep(deja_replay_thread& shown, uint64_t place, uint64_t last_seq, bool wanted) {
  deja_replay_state_t& state = deja_replay_state;
  if ((place & 1) == 0) last_operation_ = place;
  if (!IsDue(place, wanted)) return;
  const ErrnoKeeper keep;
  const uint64_t began = ClockNs(CLOCK_MONOTONIC);
  Made made;
  Reason problem = Prepare();
  if (problem.empty()) {
    const Bystanders::Stop others;
    problem = others.reason();
    if (problem.empty()) problem = Make(shown, place, last_seq, made);
  }
  if (made.image > 0) Remember(made.image);
  if (made.has_slept) {
    if (state.mute == 0) UnmuteOutput();
    if (listeners_.woken != nullptr) listeners_.woken(listeners_.context);
  }
  CopyText(state.no_images, sizeof state.no_images, problem.text());
  ++made_;
  last_ns_ = ClockNs(CLOCK_MONOTONIC);
  // While it slept nothing was spent.
  if (!made.has_slept) cost_ns_ = last_ns_ - began;
}

Reason Forks::Make(deja_replay_thread& shown, uint64_t place, uint64_t last_seq, Made& made) {
  deja_replay_state_t& state = deja_replay_state;
  if (const Reason shared = SharedWithOthers(scratch_); !shared.empty()) return shared;
  if (!files_.IsAsNoted()) return Reason::Of("another thread of it opens or reads files at a step");
  if (const Reason kept = KeepFolder(scratch_, state.image_number + 1); !kept.empty()) return kept;
  sigset_t all;
  sigset_t old;
  sigfillset(&all);
  sigprocmask(SIG_SETMASK, &all, &old);
  const pid_t parent = Parent();
  ++state.image_number;
  state.image_places = shown.places;
  state.image_place = place;
  state.image_operation = last_operation_;
  state.image_seq = last_seq;
  state.image_step = state.has_step != 0 ? state.step + 1 : 0;
  Reason problem;
  made.image = Fork();
  if (made.image < 0) problem = Reason::Of("fork: %s", strerrordesc_np(errno));
  if (made.image == 0) {
    made.has_slept = true;
    made.image = Sleep(parent);
    GoOn();
  }
  sigprocmask(SIG_SETMASK, &old, nullptr);
  return problem;
}

pid_t Forks::Sleep(pid_t parent) {
  deja_replay_state_t& state = deja_replay_state;
  char name[kNameSize] = {};
  prctl(PR_GET_NAME, name);
  for (;;) {
    state.image_wanted = 0;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (Parent() != parent) syscall(SYS_exit_group, 0);
    prctl(PR_SET_NAME, kName);
    while (__atomic_load_n(&state.image_wanted, __ATOMIC_ACQUIRE) == 0)
      syscall(SYS_futex, &state.image_wanted, FUTEX_WAIT_PRIVATE, 0, nullptr, nullptr, 0);
    const pid_t other = Fork();
    if (other == 0) continue;
    prctl(PR_SET_NAME, name);
    return other;
  }
}

namespace {

[[noreturn]] void GiveUp(const char* why) {
  Say("an image of the program cannot go on:");
  Say(why);
  syscall(SYS_exit_group, 1);
  __builtin_unreachable();
}

}  // namespace

void Forks::GoOn() {
  deja_replay_state_t& state = deja_replay_state;
  if (const Reason problem = files_.OpenAgain(); !problem.empty()) GiveUp(problem.text());
  // What came while it slept was not for it.
  sigset_t all;
  sigfillset(&all);
  const timespec now{0, 0};
  while (sigtimedwait(&all, nullptr, &now) > 0) {
  }
  if (state.mute != 0) MuteOutput();
  if (!Bystanders::MakeAgain()) GiveUp("a thread of it cannot be made again");
  for (deja_replay_thread& thread : state.threads) thread.tid = Bystanders::NewNumber(thread.tid);
  if (listeners_.renumbered != nullptr) listeners_.renumbered(listeners_.context);
  Bystanders::LetGo();
}

}  // namespace deja::replayer
