#include "replayer/forks/stopped_thread.h"

#include <asm/prctl.h>
#include <dlfcn.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstring>
#include <iterator>

#include "common/runtime/raw_syscall.h"
#include "replayer/forks/as_long.h"

namespace deja::replayer {

#if defined(__x86_64__)
namespace {

constexpr unsigned char kSyscall[] = {0x0f, 0x05};
constexpr unsigned char kMoveToEax = 0xb8;  // before it, the call's number follows
constexpr int kMoveSize = 5;
constexpr size_t kRedZone = 128;
constexpr int kShadowStackStatus = 0x5005;

// Calls that the kernel does not begin again by itself after a handler.
constexpr long kWaits[] = {
    SYS_poll,          SYS_ppoll,           SYS_select,    SYS_pselect6,        SYS_epoll_wait,
    SYS_epoll_pwait,   SYS_nanosleep,       SYS_futex,     SYS_clock_nanosleep, SYS_pause,
    SYS_rt_sigsuspend, SYS_rt_sigtimedwait, SYS_semtimedop};

// glibc's area for restartable sequences, which the kernel forgets with the thread. Found before a
// thread is stopped, since looking a name up takes the loader's lock.
struct SequenceArea {
  ptrdiff_t offset = 0;
  bool is_there = false;
};
SequenceArea FindSequenceArea() {
  const auto* offset = static_cast<const ptrdiff_t*>(dlsym(RTLD_DEFAULT, "__rseq_offset"));
  const auto* size = static_cast<const unsigned*>(dlsym(RTLD_DEFAULT, "__rseq_size"));
  if (offset == nullptr || size == nullptr || *size == 0) return {};
  return {*offset, true};
}
const SequenceArea& Sequences() {
  static const SequenceArea area = FindSequenceArea();
  return area;
}

struct Sequence {
  uint32_t cpu_id_start;
  uint32_t cpu_id;
};

void RegisterSequences(unsigned long fs) {
  if (!Sequences().is_there) return;
  constexpr long kSignature = 0x53053053;
  constexpr long kSize = 32;
  constexpr uint32_t kFailed = static_cast<uint32_t>(-2);
  constexpr uint32_t kNone = static_cast<uint32_t>(-1);
  auto* area = reinterpret_cast<Sequence*>(fs + static_cast<unsigned long>(Sequences().offset));
  area->cpu_id_start = 0;
  area->cpu_id = kNone;
  if (RawSyscall(SYS_rseq, AsLong(area), kSize, 0, kSignature) != 0) area->cpu_id = kFailed;
}

bool HasShadowStack() {
  unsigned long status = 0;
  return RawSyscall(SYS_arch_prctl, kShadowStackStatus, AsLong(&status)) == 0 && status != 0;
}

// `stack` holds where the thread begins, and with what.
long CloneThread(long flags, void** stack, int* tid_address, unsigned long fs) {
  long result = SYS_clone;
  register long r10 asm("r10") = AsLong(tid_address);
  register long r8 asm("r8") = static_cast<long>(fs);
  asm volatile(
      "syscall\n\t"
      "test %%rax, %%rax\n\t"
      "jnz 1f\n\t"
      "xor %%ebp, %%ebp\n\t"
      "pop %%rax\n\t"
      "pop %%rdi\n\t"
      "call *%%rax\n\t"
      "hlt\n"
      "1:"
      : "+a"(result)
      : "D"(flags), "S"(stack), "d"(tid_address), "r"(r10), "r"(r8)
      : "rcx", "r11", "memory");
  return result;
}

}  // namespace

void AwaitGate(const uint32_t& gate, uint32_t open) {
  for (;;) {
    const uint32_t now = __atomic_load_n(&gate, __ATOMIC_ACQUIRE);
    if (static_cast<int32_t>(now - open) >= 0) return;
    RawSyscall(SYS_futex, AsLong(&gate), FUTEX_WAIT_PRIVATE, now);
  }
}

void OpenGate(uint32_t& gate, uint32_t open) {
  __atomic_store_n(&gate, open, __ATOMIC_RELEASE);
  RawSyscall(SYS_futex, AsLong(&gate), FUTEX_WAKE_PRIVATE, INT_MAX);
}

void StoppedThread::Prepare() {
  (void)Sequences();
}

bool StoppedThread::Note(ucontext_t* frame) {
  frame_ = frame;
  if (HasShadowStack()) return false;
  sigset_t waiting{};
  constexpr long kMaskSize = 8;
  const bool asked = RawSyscall(SYS_rt_sigpending, AsLong(&waiting), kMaskSize) == 0;
  uint64_t bits = 0;
  std::memcpy(&bits, &waiting, sizeof bits);
  processors_size_ = RawSyscall(SYS_sched_getaffinity, 0, sizeof processors_, AsLong(processors_));
  return asked && bits == 0 && RawSyscall(SYS_arch_prctl, ARCH_GET_FS, AsLong(&fs_)) == 0 &&
         RawSyscall(SYS_arch_prctl, ARCH_GET_GS, AsLong(&gs_)) == 0 &&
         RawSyscall(SYS_prctl, PR_GET_TID_ADDRESS, AsLong(&tid_address_)) == 0 &&
         tid_address_ != nullptr &&
         RawSyscall(SYS_get_robust_list, 0, AsLong(&robust_list_), AsLong(&robust_size_)) == 0 &&
         RawSyscall(SYS_prctl, PR_GET_NAME, AsLong(name_)) == 0;
}

bool StoppedThread::StandsAtACall() {
  greg_t* registers = frame_->uc_mcontext.gregs;
  const auto* at = reinterpret_cast<const unsigned char*>(registers[REG_RIP]);
  // The kernel has put it before the call again.
  if (std::memcmp(at, kSyscall, sizeof kSyscall) == 0) return true;
  if (std::memcmp(at - sizeof kSyscall, kSyscall, sizeof kSyscall) != 0) return false;
  if (registers[REG_RAX] != -EINTR) return true;
  const unsigned char* move = at - sizeof kSyscall - kMoveSize;
  int32_t call = -1;
  if (*move == kMoveToEax) std::memcpy(&call, move + 1, sizeof call);
  if (std::find(std::begin(kWaits), std::end(kWaits), call) == std::end(kWaits)) return true;
  registers[REG_RAX] = call;
  registers[REG_RIP] -= static_cast<greg_t>(sizeof kSyscall);
  return true;
}

void StoppedThread::Begin(StoppedThread* self) {
  if (self->gs_ != 0) RawSyscall(SYS_arch_prctl, ARCH_SET_GS, static_cast<long>(self->gs_));
  if (self->robust_list_ != nullptr)
    RawSyscall(SYS_set_robust_list, AsLong(self->robust_list_),
               static_cast<long>(self->robust_size_));
  RegisterSequences(self->fs_);
  RawSyscall(SYS_prctl, PR_SET_NAME, AsLong(self->name_));
  if (self->processors_size_ > 0)
    RawSyscall(SYS_sched_setaffinity, 0, self->processors_size_, AsLong(self->processors_));
  OpenGate(self->is_ready_, 1);
  AwaitGate(*self->gate_, self->open_);
  // As the handler's return: the kernel takes everything from the frame.
  asm volatile(
      "mov %0, %%rsp\n\t"
      "mov %1, %%eax\n\t"
      "syscall\n\t"
      "hlt"
      :
      : "r"(self->frame_), "i"(SYS_rt_sigreturn)
      : "memory");
  __builtin_unreachable();
}

long StoppedThread::MakeAgain(const uint32_t* gate, uint32_t open) {
  gate_ = gate;
  open_ = open;
  is_ready_ = 0;
  // What the handler had on the stack is not needed any more.
  auto top = (reinterpret_cast<uintptr_t>(frame_) - kRedZone) & ~uintptr_t{63};
  void** stack = reinterpret_cast<void**>(top) - 2;
  stack[0] = reinterpret_cast<void*>(&StoppedThread::Begin);
  stack[1] = this;
  constexpr long kFlags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD |
                          CLONE_SYSVSEM | CLONE_SETTLS | CLONE_PARENT_SETTID | CLONE_CHILD_CLEARTID;
  const long made = CloneThread(kFlags, stack, tid_address_, fs_);
  if (made > 0) AwaitGate(is_ready_, 1);
  return made;
}
#endif

}  // namespace deja::replayer
