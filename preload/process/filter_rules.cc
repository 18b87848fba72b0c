#include "preload/process/filter_rules.h"

#include <fcntl.h>
#include <linux/audit.h>
#include <linux/bpf_common.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include <cstddef>
#include <cstring>

namespace deja::preload {
namespace {

// A call as Deja makes it. Arguments that filters ask about are there; the others are 0.
struct OwnCall {
  const char* name;
  int number;
  uint64_t args[3];
};

constexpr uint64_t kOwnDescriptor = 1000;  // they are out of the program's way
constexpr uint64_t kHere = static_cast<uint32_t>(AT_FDCWD);
constexpr uint64_t kThread = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD |
                             CLONE_SYSVSEM | CLONE_SETTLS | CLONE_PARENT_SETTID |
                             CLONE_CHILD_CLEARTID;

constexpr OwnCall kOwnCalls[] = {
    {"futex", SYS_futex, {0, FUTEX_WAKE_PRIVATE, 1}},
    {"getpid", SYS_getpid, {}},
    {"gettid", SYS_gettid, {}},
    {"getppid", SYS_getppid, {}},
    {"mmap", SYS_mmap, {0, 4096, PROT_READ | PROT_WRITE}},
    {"munmap", SYS_munmap, {}},
    {"mprotect", SYS_mprotect, {0, 4096, PROT_READ | PROT_WRITE}},
    {"madvise", SYS_madvise, {}},
    {"clone", SYS_clone, {kThread, 0, 0}},
    {"openat", SYS_openat, {kHere, 0, O_RDONLY | O_CLOEXEC}},
    {"openat", SYS_openat, {kHere, 0, O_RDWR | O_CREAT | O_CLOEXEC}},
    {"read", SYS_read, {kOwnDescriptor, 0, 0}},
    {"write", SYS_write, {kOwnDescriptor, 0, 0}},
    {"pread64", SYS_pread64, {kOwnDescriptor, 0, 0}},
    {"pwrite64", SYS_pwrite64, {kOwnDescriptor, 0, 0}},
    {"lseek", SYS_lseek, {kOwnDescriptor, 0, 0}},
    {"close", SYS_close, {kOwnDescriptor, 0, 0}},
    {"newfstatat", SYS_newfstatat, {kHere, 0, 0}},
    {"fcntl", SYS_fcntl, {kOwnDescriptor, F_DUPFD_CLOEXEC, 0}},
    {"getdents64", SYS_getdents64, {kOwnDescriptor, 0, 0}},
    {"readlink", SYS_readlink, {}},
    {"fallocate", SYS_fallocate, {kOwnDescriptor, 0, 0}},
    {"ftruncate", SYS_ftruncate, {kOwnDescriptor, 0, 0}},
    {"memfd_create", SYS_memfd_create, {}},
    {"mkdir", SYS_mkdir, {}},
    {"rename", SYS_rename, {}},
    {"renameat2", SYS_renameat2, {kHere, 0, kHere}},
    {"unlink", SYS_unlink, {}},
    {"rmdir", SYS_rmdir, {}},
    {"rt_sigprocmask", SYS_rt_sigprocmask, {}},
    {"rt_sigaction", SYS_rt_sigaction, {}},
    {"rt_sigpending", SYS_rt_sigpending, {}},
    {"rt_sigreturn", SYS_rt_sigreturn, {}},
    {"rt_tgsigqueueinfo", SYS_rt_tgsigqueueinfo, {}},
    {"sigaltstack", SYS_sigaltstack, {}},
    {"sched_yield", SYS_sched_yield, {}},
    {"nanosleep", SYS_nanosleep, {}},
    {"membarrier", SYS_membarrier, {}},
    {"clock_gettime", SYS_clock_gettime, {}},
    {"statx", SYS_statx, {kHere, 0, 0}},
    {"statfs", SYS_statfs, {}},
    {"access", SYS_access, {}},
    {"getcwd", SYS_getcwd, {}},
    {"uname", SYS_uname, {}},
    {"prctl", SYS_prctl, {}},
    {"sched_getaffinity", SYS_sched_getaffinity, {}},
    {"set_robust_list", SYS_set_robust_list, {}},
    {"exit", SYS_exit, {}},
};

// The part of seccomp_data that `offset` names; false: the kernel would not take the filter.
bool Load(const seccomp_data& call, uint32_t offset, uint32_t& value) {
  if (offset % sizeof value != 0 || offset > sizeof call - sizeof value) return false;
  std::memcpy(&value, reinterpret_cast<const char*>(&call) + offset, sizeof value);
  return true;
}

bool Compute(uint32_t operation, uint32_t operand, uint32_t& a) {
  switch (operation) {
    case BPF_ADD:
      a += operand;
      return true;
    case BPF_SUB:
      a -= operand;
      return true;
    case BPF_MUL:
      a *= operand;
      return true;
    case BPF_OR:
      a |= operand;
      return true;
    case BPF_AND:
      a &= operand;
      return true;
    case BPF_XOR:
      a ^= operand;
      return true;
    case BPF_LSH:
      a = operand < 32 ? a << operand : 0;
      return true;
    case BPF_RSH:
      a = operand < 32 ? a >> operand : 0;
      return true;
    case BPF_NEG:
      a = 0 - a;
      return true;
    case BPF_DIV:
      if (operand == 0) return false;
      a /= operand;
      return true;
    default:
      return false;
  }
}

bool Holds(uint32_t condition, uint32_t a, uint32_t operand) {
  switch (condition) {
    case BPF_JEQ:
      return a == operand;
    case BPF_JGT:
      return a > operand;
    case BPF_JGE:
      return a >= operand;
    default:
      return (a & operand) != 0;  // BPF_JSET
  }
}

}  // namespace

uint32_t RunFilter(std::span<const sock_filter> filter, const seccomp_data& call) {
  uint32_t a = 0;
  uint32_t x = 0;
  uint32_t memory[BPF_MEMWORDS] = {};
  // Jumps lead forwards only, so this ends.
  for (size_t at = 0; at < filter.size(); ++at) {
    const sock_filter& step = filter[at];
    const uint32_t operand = BPF_SRC(step.code) == BPF_X ? x : step.k;
    switch (BPF_CLASS(step.code)) {
      case BPF_LD:
      case BPF_LDX: {
        uint32_t& to = BPF_CLASS(step.code) == BPF_LD ? a : x;
        const uint32_t mode = BPF_MODE(step.code);
        if (mode == BPF_IMM)
          to = step.k;
        else if (mode == BPF_LEN)
          to = sizeof call;
        else if (mode == BPF_MEM && step.k < BPF_MEMWORDS)
          to = memory[step.k];
        else if (mode != BPF_ABS || !Load(call, step.k, to))
          return SECCOMP_RET_ALLOW;
        break;
      }
      case BPF_ST:
      case BPF_STX:
        if (step.k >= BPF_MEMWORDS) return SECCOMP_RET_ALLOW;
        memory[step.k] = BPF_CLASS(step.code) == BPF_ST ? a : x;
        break;
      case BPF_ALU:
        if (!Compute(BPF_OP(step.code), operand, a)) return SECCOMP_RET_ALLOW;
        break;
      case BPF_JMP:
        if (BPF_OP(step.code) == BPF_JA)
          at += step.k;
        else
          at += Holds(BPF_OP(step.code), a, operand) ? step.jt : step.jf;
        break;
      case BPF_RET:
        return BPF_RVAL(step.code) == BPF_A ? a : step.k;
      case BPF_MISC:
        (BPF_MISCOP(step.code) == BPF_TAX ? x : a) = BPF_MISCOP(step.code) == BPF_TAX ? a : x;
        break;
      default:
        return SECCOMP_RET_ALLOW;
    }
  }
  return SECCOMP_RET_ALLOW;
}

const char* RefusedBy(std::span<const sock_filter> filter) {
  for (const OwnCall& own : kOwnCalls) {
    seccomp_data call{};
    call.nr = own.number;
    call.arch = AUDIT_ARCH_X86_64;
    for (size_t i = 0; i < sizeof own.args / sizeof own.args[0]; ++i) call.args[i] = own.args[i];
    const uint32_t action = RunFilter(filter, call) & SECCOMP_RET_ACTION_FULL;
    if (action != SECCOMP_RET_ALLOW && action != SECCOMP_RET_LOG) return own.name;
  }
  return nullptr;
}

}  // namespace deja::preload
