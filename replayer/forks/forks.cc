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
#include "common/runtime/errno_keeper.h"
#include "preload/process/own_variables.h"
#include "replayer/forks/fork_folder.h"
#include "replayer/report/living_threads.h"
#include "replayer/report/program_output.h"
#include "replayer/report/report.h"

namespace deja::replayer {
namespace {

constexpr uint64_t kFree = 64;   // images that are made whatever they cost
constexpr uint64_t kShare = 20;  // and then one when the last one's cost is 1/20 of the time since
constexpr char kName[] = "deja-image";  // gdb/deja_gdb/images.py looks for it
constexpr size_t kNameSize = 16;

uint64_t Now() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1000000000 + static_cast<uint64_t>(now.tv_nsec);
}

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
  return made_ < kFree || Now() - last_ns_ >= kShare * cost_ns_;
}

std::string Forks::StayAlone() {
  if (syscall(SYS_gettid) != syscall(SYS_getpid)) return "its steps are on another thread";
  const uint64_t threads = LivingThreads() - (payloads_.reads_ahead() ? 1 : 0);
  if (threads > 1) return "it has " + std::to_string(threads) + " threads";
  payloads_.StopReadingAhead();
  return LivingThreads() == 1 ? "" : "it has threads";
}

std::string Forks::Prepare() {
  if (preload::OwnFlag(env::kAllowWrites)) return "it writes to the files themselves";
  std::string problem = StayAlone();
  if (problem.empty()) problem = SharedWithOthers(scratch_);
  if (problem.empty()) problem = files_.Note(scratch_);
  return problem;
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
  if (forked_ != nullptr) forked_();
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
  const uint64_t began = Now();
  std::string problem = Prepare();
  if (problem.empty()) problem = KeepFolder(scratch_, state.image_number + 1);
  pid_t pid = -1;
  sigset_t all;
  sigset_t old;
  sigfillset(&all);
  sigprocmask(SIG_SETMASK, &all, &old);
  const pid_t parent = Parent();
  if (problem.empty()) {
    ++state.image_number;
    state.image_places = shown.places;
    state.image_place = place;
    state.image_operation = last_operation_;
    state.image_seq = last_seq;
    state.image_step = state.has_step != 0 ? state.step + 1 : 0;
    pid = Fork();
    if (pid < 0) problem = std::string("fork: ") + strerrordesc_np(errno);
  }
  if (pid == 0) {
    Sleep(parent);
    GoOn(shown);
  } else if (pid > 0) {
    Remember(pid);
  }
  sigprocmask(SIG_SETMASK, &old, nullptr);
  const size_t n = std::min(problem.size(), sizeof state.no_images - 1);
  std::memcpy(state.no_images, problem.data(), n);
  state.no_images[n] = '\0';
  ++made_;
  last_ns_ = Now();
  // While it slept nothing was spent.
  if (pid != 0) cost_ns_ = last_ns_ - began;
}

void Forks::Sleep(pid_t parent) {
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
    if (other > 0) Remember(other);
    break;
  }
  prctl(PR_SET_NAME, name);
}

void Forks::GoOn(deja_replay_thread& shown) {
  deja_replay_state_t& state = deja_replay_state;
  shown.tid = static_cast<int32_t>(syscall(SYS_gettid));
  if (const std::string problem = files_.OpenAgain(); !problem.empty()) {
    Say("an image of the program cannot go on: " + problem);
    syscall(SYS_exit_group, 1);
  }
  // What came while it slept was not for it.
  sigset_t all;
  sigfillset(&all);
  const timespec now{0, 0};
  while (sigtimedwait(&all, nullptr, &now) > 0) {
  }
  if (state.mute != 0)
    MuteOutput();
  else
    UnmuteOutput();
  if (woken_ != nullptr) woken_(context_);
}

}  // namespace deja::replayer
