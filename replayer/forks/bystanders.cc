#include "replayer/forks/bystanders.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>

#include "common/os/folder_entries.h"
#include "common/runtime/raw_syscall.h"
#include "replayer/forks/as_long.h"
#include "replayer/forks/stopped_thread.h"
#include "replayer/report/living_threads.h"

namespace deja::replayer {
namespace {

constexpr int kSignal = 33;  // glibc's SIGSETXID: sigfillset and sigprocmask leave it out
constexpr size_t kMaxThreads = 256;
constexpr int kAttempts = 4;  // until all of them wait at once
constexpr timespec kBetweenAttempts{0, 3'000'000};
constexpr timespec kLook{0, 1'000'000};
constexpr int kPatience = 1000;  // looks, until a thread does not answer
constexpr long kMaskSize = 8;

enum class Answer : uint32_t { kNone, kWaits, kComputes, kCannot, kGone };

// A thread's, as long as it lives: a signal that has been given up for lost may still arrive.
struct Seat {
  StoppedThread thread;
  int old_tid = 0;
  uint32_t asked = 0;   // number of the last stop that it was asked for
  uint32_t answer = 0;  // an Answer to a stop; atomic
};

Seat g_seats[kMaxThreads];
int g_stopper = 0;          // the thread that stops the others
uint32_t g_seated = 0;      // the first of them have been used; atomic
uint32_t g_stops = 0;       // so far
uint32_t g_stop = 0;        // the one under way; 0: none; atomic
uint32_t g_gate = 0;        // the last one that is over
uint32_t g_image_gate = 0;  // the same, for the threads that are made again in an image

constexpr uint32_t Pack(uint32_t stop, Answer answer) {
  return stop * 8 + static_cast<uint32_t>(answer);
}

// As the kernel has it.
struct KernelAction {
  void (*handler)(int, siginfo_t*, void*);
  unsigned long flags;
  void (*restorer)();
  uint64_t mask;
};
KernelAction g_before{};

#if defined(__x86_64__)
constexpr unsigned long kRestorer = 0x04000000;

// The kernel returns from handlers through it.
__attribute__((naked)) void Restore() {
  asm("mov $15, %eax\n\tsyscall");
}

// Nothing may be called that a hook comes before, and no thread-local of Deja's be touched.
void OnSignal(int signal, siginfo_t* info, void* frame) {
  if (info->si_code != SI_QUEUE || info->si_value.sival_ptr != &g_seats) {
    if (reinterpret_cast<uintptr_t>(g_before.handler) > 1) g_before.handler(signal, info, frame);
    return;
  }
  const uint32_t stop = __atomic_load_n(&g_stop, __ATOMIC_ACQUIRE);
  if (stop == 0) return;  // it has been given up meanwhile
  const auto tid = static_cast<int>(RawSyscall(SYS_gettid));
  for (uint32_t i = 0; i < __atomic_load_n(&g_seated, __ATOMIC_ACQUIRE); ++i) {
    Seat& seat = g_seats[i];
    if (seat.thread.tid != tid) continue;
    const bool can = seat.thread.Note(static_cast<ucontext_t*>(frame));
    const bool waits = seat.thread.StandsAtACall();
    const Answer answer = !can ? Answer::kCannot : (waits ? Answer::kWaits : Answer::kComputes);
    __atomic_store_n(&seat.answer, Pack(stop, answer), __ATOMIC_RELEASE);
    AwaitGate(g_gate, stop);
    return;
  }
}

bool TakeSignal() {
  KernelAction now{};
  if (RawSyscall(SYS_rt_sigaction, kSignal, 0, AsLong(&now), kMaskSize) != 0) return false;
  if (now.handler == &OnSignal) return true;
  g_before = now;
  const KernelAction ours{&OnSignal, SA_SIGINFO | SA_RESTART | kRestorer, &Restore, ~uint64_t{0}};
  return RawSyscall(SYS_rt_sigaction, kSignal, AsLong(&ours), 0, kMaskSize) == 0;
}
#else
bool TakeSignal() {
  return false;
}
#endif

long Send(int tid) {
  siginfo_t info{};
  info.si_signo = kSignal;
  info.si_code = SI_QUEUE;
  info.si_pid = static_cast<pid_t>(RawSyscall(SYS_getpid));
  info.si_value.sival_ptr = &g_seats;
  return RawSyscall(SYS_rt_tgsigqueueinfo, info.si_pid, tid, kSignal, AsLong(&info));
}

bool IsListed(int tid) {
  char path[48];
  snprintf(path, sizeof path, "/proc/self/task/%d", tid);
  return RawSyscall(SYS_faccessat, AT_FDCWD, AsLong(path), F_OK) == 0;
}

// The thread's, or one that is free; null: there is none.
Seat* SeatOf(int tid) {
  Seat* free = nullptr;
  for (uint32_t i = 0; i < g_seated; ++i) {
    Seat& seat = g_seats[i];
    if (seat.thread.tid == tid) return &seat;
    if (free == nullptr && (seat.thread.tid == 0 || !IsListed(seat.thread.tid))) free = &seat;
  }
  if (free == nullptr && g_seated < kMaxThreads) {
    free = &g_seats[g_seated];
    free->thread.tid = tid;
    __atomic_store_n(&g_seated, g_seated + 1, __ATOMIC_RELEASE);
  }
  if (free != nullptr) free->thread.tid = tid;
  return free;
}

// Asks the threads that have not been asked yet. `found`: there were some.
Reason AskNewOnes(bool& found) {
  found = false;
  Reason reason;
  const auto self = static_cast<int>(RawSyscall(SYS_gettid));
  ForEachEntry("/proc/self/task", [&](const char* name, int) {
    const int tid = atoi(name);
    if (tid <= 0 || tid == self) return true;
    Seat* seat = SeatOf(tid);
    if (seat == nullptr) {
      reason = Reason::Of("it has more than %zu threads", kMaxThreads);
      return false;
    }
    if (seat->asked == g_stop) return true;
    if (!TakeSignal()) {
      reason = Reason::Of("it has several threads, which cannot be stopped here");
      return false;
    }
    found = true;
    seat->asked = g_stop;
    if (Send(tid) == -ESRCH) seat->answer = Pack(g_stop, Answer::kGone);
    return true;
  });
  return reason;
}

// Their answers, or that a thread has ended. False: one of them does not answer.
bool AwaitAnswers() {
  for (int look = 0; look < kPatience; ++look) {
    bool all = true;
    for (uint32_t i = 0; i < g_seated; ++i) {
      Seat& seat = g_seats[i];
      if (seat.asked != g_stop) continue;
      if (__atomic_load_n(&seat.answer, __ATOMIC_ACQUIRE) / 8 == g_stop) continue;
      // One that ends is waited for: it tells others of its end when it is nearly gone.
      if (!IsListed(seat.thread.tid))
        seat.answer = Pack(g_stop, Answer::kGone);
      else
        all = false;
    }
    if (all) return true;
    RawSyscall(SYS_nanosleep, AsLong(&kLook), 0);
  }
  return false;
}

bool HasAnswer(uint32_t stop, Answer answer) {
  for (uint32_t i = 0; i < g_seated; ++i)
    if (__atomic_load_n(&g_seats[i].answer, __ATOMIC_ACQUIRE) == Pack(stop, answer)) return true;
  return false;
}

void GoOn() {
  const uint32_t stop = g_stop;
  __atomic_store_n(&g_stop, 0, __ATOMIC_RELEASE);
  OpenGate(g_gate, stop);
}

Reason StopOnce() {
  __atomic_store_n(&g_stop, ++g_stops, __ATOMIC_RELEASE);
  // Those that run may make others, until they have answered.
  for (bool found = true; found;) {
    if (const Reason reason = AskNewOnes(found); !reason.empty()) return reason;
    if (!AwaitAnswers()) return Reason::Of("a thread of it does not answer");
  }
  if (HasAnswer(g_stop, Answer::kCannot))
    return Reason::Of("the state of a thread cannot be read, or signals wait for it");
  if (HasAnswer(g_stop, Answer::kComputes))
    return Reason::Of("another thread of it computes at its steps");
  return {};
}

}  // namespace

Bystanders::Stop::Stop() {
  StoppedThread::Prepare();
  g_stopper = static_cast<int>(RawSyscall(SYS_gettid));
  if (const uint64_t threads = LivingThreads(); threads > kMaxThreads) {
    reason_ = Reason::Of("it has %lu threads", static_cast<unsigned long>(threads));
    return;
  }
  for (int i = 0; i < kAttempts; ++i) {
    reason_ = StopOnce();
    if (reason_.empty()) return;
    const bool computes = HasAnswer(g_stop, Answer::kComputes);
    GoOn();
    if (!computes) return;
    RawSyscall(SYS_nanosleep, AsLong(&kBetweenAttempts), 0);
  }
}

Bystanders::Stop::~Stop() {
  if (g_stop != 0) GoOn();
}

bool Bystanders::MakeAgain() {
  bool all = true;
#if defined(__x86_64__)
  // A thread begins with the mask of this one. No signal, that of the next stop neither, may come
  // before it has the registers and the mask that it had.
  const uint64_t every = ~uint64_t{0};
  uint64_t before = 0;
  RawSyscall(SYS_rt_sigprocmask, SIG_SETMASK, AsLong(&every), AsLong(&before), kMaskSize);
  for (uint32_t i = 0; i < g_seated; ++i) {
    Seat& seat = g_seats[i];
    seat.old_tid = seat.thread.tid;
    if (seat.answer != Pack(g_stop, Answer::kWaits)) {
      seat.thread.tid = 0;
      continue;
    }
    const long made = seat.thread.MakeAgain(&g_image_gate, g_stop);
    all = all && made > 0;
    seat.thread.tid = made > 0 ? static_cast<int>(made) : 0;
  }
  RawSyscall(SYS_rt_sigprocmask, SIG_SETMASK, AsLong(&before), 0, kMaskSize);
#endif
  return all;
}

void Bystanders::LetGo() {
  OpenGate(g_image_gate, g_stop);
  __atomic_store_n(&g_stop, 0, __ATOMIC_RELEASE);
}

int Bystanders::NewNumber(int tid) {
  if (tid == g_stopper) return static_cast<int>(RawSyscall(SYS_gettid));
  for (uint32_t i = 0; i < g_seated; ++i)
    if (g_seats[i].old_tid == tid && g_seats[i].thread.tid != 0) return g_seats[i].thread.tid;
  return tid;
}

}  // namespace deja::replayer
