#include "preload/engine/signals.h"

#include <pthread.h>
#include <setjmp.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>

#include "common/runtime/own_mapping.h"
#include "common/runtime/spin_lock.h"
#include "preload/calls/life_calls.h"
#include "preload/engine/engine.h"
#include "preload/process/fault_escape.h"
#include "preload/process/guard.h"
#include "preload/process/process_name.h"
#include "preload/symbols/real_symbols.h"

namespace deja::preload {
namespace {

constinit RealFn<int (*)(int, const struct sigaction*, struct sigaction*)> real_sigaction{
    "sigaction"};
constinit RealFn<int (*)(const stack_t*, stack_t*)> real_sigaltstack{"sigaltstack"};

constexpr int kWatched[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGSYS, SIGTRAP, SIGTERM};
constexpr int kSignals = 32;

// The program's setting for a signal, readable by the handler at any moment: the handler copies it
// and looks whether it changed meanwhile.
class ProgramAction {
 public:
  void Set(const struct sigaction& action) {
    version_.fetch_add(1, std::memory_order_acq_rel);
    action_ = action;
    version_.fetch_add(1, std::memory_order_release);
  }
  [[nodiscard]] struct sigaction Get() const {
    struct sigaction copy {};
    // A writer that this thread interrupted will not finish before the handler does.
    for (int i = 0; i < 1000; ++i) {
      uint32_t before = version_.load(std::memory_order_acquire);
      copy = action_;
      std::atomic_thread_fence(std::memory_order_acquire);
      if ((before & 1) == 0 && version_.load(std::memory_order_relaxed) == before) break;
    }
    return copy;
  }

 private:
  std::atomic<uint32_t> version_{0};
  struct sigaction action_ {};
};

ProgramAction g_program[kSignals];
std::atomic<bool> g_installed{false};
SpinLock g_lock;  // writers of g_program

// A program may work by crashes that its own handler takes care of: the first few are reported.
// Deadly ones always are.
constexpr uint32_t kHandledCrashesTold = 8;
std::atomic<uint32_t> g_handled_told{0};

// Which thread is telling the engine about a crash; others wait for it before they end the process.
std::atomic<int> g_telling{0};

// With closed pages on both sides: it may lie just below the stack of another thread, whose
// overflow must end where it would have ended.
constexpr size_t kAlternateStackBytes = 128 << 10;
constexpr size_t kGuardBytes = 64 << 10;
constexpr size_t kMappedBytes = kAlternateStackBytes + 2 * kGuardBytes;
constinit thread_local void* t_stack __attribute__((tls_model("initial-exec"))) = nullptr;
// A reported signal that comes once more, without our alternate stack.
constinit thread_local int t_again __attribute__((tls_model("initial-exec"))) = 0;
// The program's handlers that run on this thread, and those that left by a jump.
constinit thread_local uint32_t t_handlers __attribute__((tls_model("initial-exec"))) = 0;

bool IsHandler(const struct sigaction& action) {
  return (action.sa_flags & SA_SIGINFO) != 0 ||
         (action.sa_handler != SIG_DFL && action.sa_handler != SIG_IGN);
}

bool IsIgnored(const struct sigaction& action) {
  return (action.sa_flags & SA_SIGINFO) == 0 && action.sa_handler == SIG_IGN;
}

// Executing the instruction again raises the signal again.
bool ComesAgain(int signal, const siginfo_t& info) {
  return info.si_code > 0 && info.si_code != SI_KERNEL &&
         (signal == SIGSEGV || signal == SIGBUS || signal == SIGFPE || signal == SIGILL);
}

void WaitForTeller() {
  constexpr timespec kStep{0, 1000000};
  for (int i = 0; i < 3000 && g_telling.load(std::memory_order_acquire) != 0; ++i)
    syscall(SYS_nanosleep, &kStep, nullptr);
}

void Tell(Engine& engine, int signal, siginfo_t* info, void* context) {
  int self = static_cast<int>(syscall(SYS_gettid));
  int nobody = 0;
  if (!g_telling.compare_exchange_strong(nobody, self, std::memory_order_acq_rel)) {
    WaitForTeller();
    return;
  }
  // Faults of our own must reach us (see Escape), so they are let through.
  sigset_t faults;
  sigset_t saved;
  sigemptyset(&faults);
  sigaddset(&faults, SIGSEGV);
  sigaddset(&faults, SIGBUS);
  pthread_sigmask(SIG_UNBLOCK, &faults, &saved);
  sigjmp_buf escape;
  uint32_t depth = t_guard_depth;
  if (sigsetjmp(escape, 0) == 0) {
    t_escape = &escape;
    ++t_guard_depth;
    engine.life->OnCrash(signal, info, context);
  }
  t_escape = nullptr;
  t_guard_depth = depth;
  pthread_sigmask(SIG_SETMASK, &saved, nullptr);
  g_telling.store(0, std::memory_order_release);
}

// The default action, at the place where the program was. It happens at the return from the
// handler, by the instruction itself or by the same signal once more.
void TakeDefault(int signal, siginfo_t* info) {
  struct sigaction action {};
  action.sa_handler = SIG_DFL;
  real_sigaction(signal, &action, nullptr);
  if (!ComesAgain(signal, *info))
    syscall(SYS_rt_tgsigqueueinfo, syscall(SYS_getpid), syscall(SYS_gettid), signal, info);
}

bool OnOurStack() {
  char here;
  auto* base = static_cast<char*>(t_stack);
  return base != nullptr && &here >= base && &here < base + kAlternateStackBytes;
}

void UseOurStack() {
  stack_t stack{};
  stack.ss_sp = t_stack;
  stack.ss_size = kAlternateStackBytes;
  real_sigaltstack(&stack, nullptr);
}

// Takes our alternate stack away while running on it. The kernel refuses that by looking at the
// stack pointer, which is therefore elsewhere during the call, with all signals blocked.
bool DropOurStack(void* context) {
#if defined(__x86_64__)
  auto* uc = static_cast<ucontext_t*>(context);
  sigset_t all;
  sigset_t saved;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &saved);
  stack_t none{};
  none.ss_flags = SS_DISABLE;
  long rc = SYS_sigaltstack;
  asm volatile(
      "movq %%rsp, %%r12\n\t"
      "movq %[elsewhere], %%rsp\n\t"
      "syscall\n\t"
      "movq %%r12, %%rsp"
      : "+a"(rc)
      : "D"(&none), "S"(0), [elsewhere] "r"(uc->uc_mcontext.gregs[REG_RSP])
      : "rcx", "r11", "r12", "memory");
  pthread_sigmask(SIG_SETMASK, &saved, nullptr);
  uc->uc_stack = none;  // and the return from the handler does not bring it back
  return rc == 0;
#else
  (void)context;
  return false;
#endif
}

// The program's handler wants an alternate stack, and this thread of the program has none. The
// kernel would have run it on the thread's stack, or not at all if there is no room. So the signal
// comes again, without our stack. False if that cannot be done.
bool ComeAgainWithoutOurStack(int signal, siginfo_t* info, void* context) {
  if (!DropOurStack(context)) return false;
  t_again = signal;
  if (!ComesAgain(signal, *info))
    syscall(SYS_rt_tgsigqueueinfo, syscall(SYS_getpid), syscall(SYS_gettid), signal, info);
  return true;
}

// In a replay the program's processes have the recorded pids and compare the sender with these.
// Torch's loader workers end well when the sender is their parent.
void NameSender(siginfo_t& info) {
  if ((info.si_code != SI_USER && info.si_code != SI_QUEUE && info.si_code != SI_TKILL) ||
      !HasProcessName())
    return;
  const ProcessName& name = OwnProcessName();
  if (name.recorded_parent != 0 && info.si_pid == syscall(SYS_getppid)) {
    info.si_pid = name.recorded_parent;
  } else if (name.recorded_pid != 0 && info.si_pid == name.pid) {
    info.si_pid = name.recorded_pid;
  }
}

void RunHandler(const struct sigaction& action, int signal, siginfo_t* info, void* context) {
  ++t_handlers;
  if ((action.sa_flags & SA_SIGINFO) != 0) {
    NameSender(*info);
    action.sa_sigaction(signal, info, context);
  } else {
    action.sa_handler(signal);
  }
  --t_handlers;
}

void OnSignal(int signal, siginfo_t* info, void* context) {
  // A fault while the engine was being told: back to Tell, which goes on without.
  if (t_escape != nullptr && (signal == SIGSEGV || signal == SIGBUS)) siglongjmp(*t_escape, 1);
  int saved_errno = errno;
  struct sigaction action = g_program[signal].Get();
  bool handled = IsHandler(action);
  Engine* engine = EngineOfThisProcess();
  bool again = t_again == signal;
  t_again = 0;
  if (again) UseOurStack();
  bool tell =
      !handled || g_handled_told.fetch_add(1, std::memory_order_relaxed) < kHandledCrashesTold;
  if (engine != nullptr && tell && !again) Tell(*engine, signal, info, context);
  if (handled && OnOurStack() && ComeAgainWithoutOurStack(signal, info, context)) {
    errno = saved_errno;
    return;
  }
  if (handled) {
    if ((action.sa_flags & SA_RESETHAND) != 0) {
      // As the kernel would have done on the way in.
      struct sigaction reset {};
      reset.sa_handler = SIG_DFL;
      SetProgramAction(signal, &reset, nullptr);
    }
    errno = saved_errno;
    RunHandler(action, signal, info, context);
    return;
  }
  WaitForTeller();
  TakeDefault(signal, info);
  errno = saved_errno;
}

// SIGTERM is of interest as the end of the process, so the engine hears of it only where it is.
void OnHandledSigterm(int signal, siginfo_t* info, void* context) {
  const struct sigaction action = g_program[signal].Get();
  if (!IsHandler(action)) return OnSignal(signal, info, context);
  RunHandler(action, signal, info, context);
}

// The kernel's flags for what the program wants.
struct sigaction KernelAction(int signal, const struct sigaction& program) {
  if (IsIgnored(program)) return program;
  struct sigaction action = program;
  if (signal == SIGTERM && IsHandler(program)) {
    if ((program.sa_flags & SA_SIGINFO) != 0) action.sa_sigaction = &OnHandledSigterm;
    return action;
  }
  action.sa_sigaction = &OnSignal;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  if (IsHandler(program)) {
    constexpr int kKept = SA_ONSTACK | SA_RESTART | SA_NODEFER | SA_NOCLDSTOP | SA_NOCLDWAIT;
    action.sa_flags = SA_SIGINFO | (program.sa_flags & kKept);
  } else {
    sigemptyset(&action.sa_mask);
  }
  return action;
}

// The C library adds its trampoline to every action, and shows it in the old ones.
struct sigaction WithRestorer(int signal, struct sigaction action) {
  constexpr int kRestorer = 0x04000000;
  struct sigaction kernel {};
  if (real_sigaction(signal, nullptr, &kernel) == 0) {
    action.sa_restorer = kernel.sa_restorer;
    action.sa_flags |= kernel.sa_flags & kRestorer;
  }
  return action;
}

}  // namespace

void InstallCrashHandlers() {
  GiveAlternateStack();
  if (g_installed.exchange(true)) return;
  for (int signal : kWatched) {
    struct sigaction program {};
    if (real_sigaction(signal, nullptr, &program) != 0) continue;
    g_program[signal].Set(program);
    struct sigaction action = KernelAction(signal, program);
    if (!IsIgnored(program)) real_sigaction(signal, &action, nullptr);
  }
}

void RemoveCrashHandlers() {
  if (!g_installed.exchange(false)) return;
  for (int signal : kWatched) {
    const struct sigaction program = g_program[signal].Get();
    real_sigaction(signal, &program, nullptr);
  }
  TakeAlternateStackBack();
}

void GiveAlternateStack() {
  stack_t current{};
  if (t_stack != nullptr || real_sigaltstack(nullptr, &current) != 0 ||
      (current.ss_flags & SS_DISABLE) == 0)
    return;
  void* memory =
      MapOwn(kMappedBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK);
  if (memory == MAP_FAILED) return;
  stack_t stack{};
  stack.ss_sp = static_cast<char*>(memory) + kGuardBytes;
  stack.ss_size = kAlternateStackBytes;
  if (mprotect(stack.ss_sp, stack.ss_size, PROT_READ | PROT_WRITE) == 0 &&
      real_sigaltstack(&stack, nullptr) == 0) {
    t_stack = stack.ss_sp;
  } else {
    munmap(memory, kMappedBytes);
  }
}

void TakeAlternateStackBack() {
  if (t_stack == nullptr) return;
  stack_t current{};
  if (real_sigaltstack(nullptr, &current) != 0) return;
  if ((current.ss_flags & SS_ONSTACK) != 0) return;  // it ends in a handler
  if (current.ss_sp == t_stack) {
    stack_t none{};
    none.ss_flags = SS_DISABLE;
    real_sigaltstack(&none, nullptr);
  }
  munmap(static_cast<char*>(t_stack) - kGuardBytes, kMappedBytes);
  t_stack = nullptr;
}

bool InProgramHandler() {
  return t_handlers != 0;
}

bool IsWatched(int signal) {
  if (!g_installed.load(std::memory_order_acquire)) return false;
  for (int watched : kWatched)
    if (signal == watched) return true;
  return false;
}

int SetProgramAction(int signal, const struct sigaction* action, struct sigaction* old) {
  // A vfork child changes its own dispositions, and must not touch the parent's table.
  if (EngineOfThisProcess() == nullptr && GetEngine() != nullptr &&
      EngineOfThisProcess() == nullptr)
    return real_sigaction(signal, action, old);
  if (!g_lock.LockBriefly()) return real_sigaction(signal, action, old);
  struct sigaction before = g_program[signal].Get();
  int rc = 0;
  if (action != nullptr) {
    struct sigaction kernel = KernelAction(signal, *action);
    // First the table: from the moment when the kernel knows, the handler may run.
    g_program[signal].Set(*action);
    rc = real_sigaction(signal, &kernel, nullptr);
    g_program[signal].Set(rc == 0 ? WithRestorer(signal, *action) : before);
  }
  g_lock.Unlock();
  if (rc == 0 && old != nullptr) *old = before;
  return rc;
}

int SetProgramStack(const stack_t* stack, stack_t* old) {
  if (t_stack == nullptr) return real_sigaltstack(stack, old);
  stack_t before{};
  if (real_sigaltstack(nullptr, &before) != 0) return real_sigaltstack(stack, old);
  bool ours = before.ss_sp == t_stack;
  int rc = 0;
  if (stack != nullptr && (stack->ss_flags & SS_DISABLE) != 0) {
    // Ours is there whenever the program has none.
    if (!ours) {
      rc = real_sigaltstack(stack, nullptr);
      if (rc == 0) UseOurStack();
    }
  } else if (stack != nullptr) {
    rc = real_sigaltstack(stack, nullptr);
  }
  if (rc == 0 && old != nullptr) {
    *old = before;
    if (ours) *old = stack_t{.ss_sp = nullptr, .ss_flags = SS_DISABLE, .ss_size = 0};
  }
  return rc;
}

}  // namespace deja::preload
