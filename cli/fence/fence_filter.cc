#include "cli/fence/fence_filter.h"

#include <fcntl.h>
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <sys/ioctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <utility>

#include "cli/fence/late_syscalls.h"

namespace deja::cli {
namespace {

constexpr uint32_t kAllow = SECCOMP_RET_ALLOW;
constexpr uint32_t kAsk = SECCOMP_RET_USER_NOTIF;
constexpr uint32_t Errno(int error) {
  return SECCOMP_RET_ERRNO | static_cast<uint32_t>(error);
}

struct Refused {
  long call;
  int error;
};

// Calls that are refused whatever their arguments are.
constexpr Refused kAlways[] = {
    // The machine.
    {SYS_bpf, EPERM},
    {SYS_perf_event_open, EPERM},
    {SYS_reboot, EPERM},
    {SYS_kexec_load, EPERM},
    {SYS_kexec_file_load, EPERM},
    {SYS_init_module, EPERM},
    {SYS_finit_module, EPERM},
    {SYS_delete_module, EPERM},
    {SYS_swapon, EPERM},
    {SYS_swapoff, EPERM},
    {SYS_acct, EPERM},
    {SYS_quotactl, EPERM},
    {kSysQuotactlFd, EPERM},
    {SYS_settimeofday, EPERM},
    {SYS_clock_settime, EPERM},
    {SYS_sethostname, EPERM},
    {SYS_setdomainname, EPERM},
    {SYS_iopl, EPERM},
    {SYS_ioperm, EPERM},
    {SYS_vhangup, EPERM},
    {SYS_syslog, EPERM},
    // File systems: what is mounted, and files that are named by no path.
    {SYS_mount, EPERM},
    {SYS_umount2, EPERM},
    {SYS_pivot_root, EPERM},
    {SYS_chroot, EPERM},
    {kSysOpenTree, EPERM},
    {kSysMoveMount, EPERM},
    {kSysFsopen, EPERM},
    {kSysFsconfig, EPERM},
    {kSysFsmount, EPERM},
    {kSysFspick, EPERM},
    {kSysMountSetattr, EPERM},
    {SYS_open_by_handle_at, EPERM},
    {SYS_fanotify_init, EPERM},
    // Other name spaces, in which an ordinary user is root.
    {SYS_unshare, EPERM},
    {SYS_setns, EPERM},
    // Rings of system calls that no filter sees, and keys that outlive the process.
    {kSysIoUringSetup, ENOSYS},
    {kSysIoUringEnter, ENOSYS},
    {kSysIoUringRegister, ENOSYS},
    {SYS_add_key, ENOSYS},
    {SYS_request_key, ENOSYS},
    {SYS_keyctl, ENOSYS},
    {kSysProcessMrelease, EPERM},
};

// Which file is meant decides.
constexpr long kOfFiles[] = {
    SYS_chmod,    SYS_fchmod,    SYS_fchmodat,  kSysFchmodat2,   SYS_chown,        SYS_fchown,
    SYS_lchown,   SYS_fchownat,  SYS_utime,     SYS_utimes,      SYS_futimesat,    SYS_utimensat,
    SYS_setxattr, SYS_lsetxattr, SYS_fsetxattr, SYS_removexattr, SYS_lremovexattr, SYS_fremovexattr,
    SYS_flock,    SYS_ftruncate, SYS_fallocate,
};

// System V objects, and message queues with names, are the replay's own.
constexpr long kOfObjects[] = {
    SYS_shmget, SYS_shmat, SYS_shmctl,     SYS_msgget, SYS_msgsnd,  SYS_msgrcv,    SYS_msgctl,
    SYS_semget, SYS_semop, SYS_semtimedop, SYS_semctl, SYS_mq_open, SYS_mq_unlink,
};

// Controls of terminals that put input into them as if typed. Controls of files that set flags, or
// act on a whole file system.
constexpr uint32_t kRefusedControls[] = {
    0x5412,      // TIOCSTI
    0x541C,      // TIOCLINUX
    0x541D,      // TIOCCONS
    0x40086602,  // FS_IOC_SETFLAGS
    0x40046602,  // FS_IOC32_SETFLAGS
    0x401C5820,  // FS_IOC_FSSETXATTR
    0x40087602,  // FS_IOC_SETVERSION
    0x40047602,  // FS_IOC32_SETVERSION
    0x40806685,  // FS_IOC_ENABLE_VERITY
    0x41009432,  // FS_IOC_SETFSLABEL
    0xC0045877,  // FIFREEZE
    0xC0045878,  // FITHAW
    0xC0185879,  // FITRIM
    0x8004587D,  // FS_IOC_SHUTDOWN
    0x40086604,  // EXT4_IOC_SETVERSION_OLD
    0x6609,      // EXT4_IOC_MIGRATE
    0x800C6613,  // FS_IOC_SET_ENCRYPTION_POLICY
    0xC0506617,  // FS_IOC_ADD_ENCRYPTION_KEY
    0xC0406618,  // FS_IOC_REMOVE_ENCRYPTION_KEY
    0xC0406619,  // FS_IOC_REMOVE_ENCRYPTION_KEY_ALL_USERS
    0x40047211,  // FAT_IOCTL_SET_ATTRIBUTES
};

// btrfs makes, changes and removes subvolumes by controls of a folder, and Landlock does not see
// that. What has the same letter and is for any file system goes on.
constexpr uint32_t kControlLetter = 0xff00;
constexpr uint32_t kLetterOfBtrfs = 0x9400;
constexpr uint32_t kAllowedOfBtrfs[] = {
    0x40049409,  // FICLONE
    0x4020940D,  // FICLONERANGE
    0xC0189436,  // FIDEDUPERANGE
    0x81009431,  // FS_IOC_GETFSLABEL
    0x8400941F,  // BTRFS_IOC_FS_INFO
    0xD0009412,  // BTRFS_IOC_INO_LOOKUP
};

constexpr uint32_t kFastOpen = 0x20000000;  // MSG_FASTOPEN: connects and sends at once
constexpr uint32_t kTypeMask = 0xf;
constexpr long kFirstUnknown = 463;  // setxattrat, and what came later
constexpr uint32_t kX32Bit = 0x40000000;

constexpr uint32_t LowOf(int argument) {
  return static_cast<uint32_t>(offsetof(seccomp_data, args)) + 8 * static_cast<uint32_t>(argument);
}

class Program {
 public:
  explicit Program(const FilterRules& rules) : ask_(rules.unanswered ? kAllow : kAsk) {}

  void Add(uint16_t code, uint32_t value, uint8_t yes = 0, uint8_t no = 0) {
    code_.push_back({code, yes, no, value});
  }
  void Load(uint32_t offset) { Add(BPF_LD | BPF_W | BPF_ABS, offset); }
  void Return(uint32_t answer) { Add(BPF_RET | BPF_K, answer); }
  // With the value that was loaded last; the next instruction is left out where it is another one.
  void IfEqual(uint32_t value) { Add(BPF_JMP | BPF_JEQ | BPF_K, value, 0, 1); }
  void IfAnyOf(uint32_t bits) { Add(BPF_JMP | BPF_JSET | BPF_K, bits, 0, 1); }
  void ReturnIf(uint32_t value, uint32_t answer) {
    IfEqual(value);
    Return(answer);
  }

  // `body(program)` says what happens to `call`; it ends with a Return.
  template <typename Body>
  void On(long call, Body body) {
    const size_t at = code_.size();
    IfEqual(static_cast<uint32_t>(call));
    body();
    code_[at].jf = static_cast<uint8_t>(code_.size() - at - 1);
  }
  void On(long call, uint32_t answer) { ReturnIf(static_cast<uint32_t>(call), answer); }

  [[nodiscard]] uint32_t ask() const { return ask_; }
  [[nodiscard]] std::vector<sock_filter> Take() { return std::move(code_); }

 private:
  const uint32_t ask_;
  std::vector<sock_filter> code_;
};

// Calls on the caller itself (process 0) go on; the keeper decides about calls on another process.
void AddProcesses(Program& p, const FilterRules& rules) {
  for (const long call :
       {SYS_sched_setaffinity, SYS_sched_setscheduler, SYS_sched_setparam, SYS_sched_setattr})
    p.On(call, [&] {
      p.Load(LowOf(0));
      p.ReturnIf(0, kAllow);
      p.Return(p.ask());
    });
  p.On(SYS_prlimit64, [&] {
    p.Load(LowOf(0));
    p.ReturnIf(0, kAllow);
    p.Return(p.ask());
  });
  for (const auto& [call, one_process] :
       {std::pair<long, uint32_t>{SYS_setpriority, PRIO_PROCESS}, {SYS_ioprio_set, 1}})
    p.On(call, [&, one = one_process] {
      p.Load(LowOf(0));
      p.Add(BPF_JMP | BPF_JEQ | BPF_K, one, 1, 0);
      p.Return(Errno(EPERM));
      p.Load(LowOf(1));
      p.ReturnIf(0, kAllow);
      p.Return(p.ask());
    });
  for (const long call : {SYS_migrate_pages, SYS_move_pages})
    p.On(call, [&] {
      p.Load(LowOf(0));
      p.ReturnIf(0, kAllow);
      p.Return(Errno(EPERM));
    });
  if (rules.landlock_abi == 0) {
    p.On(SYS_ptrace, [&] {
      p.Load(LowOf(0));
      p.ReturnIf(PTRACE_ATTACH, Errno(EPERM));
      p.ReturnIf(PTRACE_SEIZE, Errno(EPERM));
      p.Return(kAllow);
    });
    p.On(SYS_process_vm_writev, Errno(EPERM));
  }
  if (rules.landlock_abi >= 6) return;
  for (const long call :
       {SYS_kill, SYS_tkill, SYS_tgkill, SYS_rt_sigqueueinfo, SYS_rt_tgsigqueueinfo})
    p.On(call, p.ask());
  p.On(kSysPidfdSendSignal, Errno(EPERM));
}

// Without a network there are Unix sockets within the replay, and the routing table's.
void AddSockets(Program& p) {
  p.On(SYS_socket, [&] {
    p.Load(LowOf(0));
    for (const uint32_t domain : {AF_INET, AF_INET6}) p.ReturnIf(domain, p.ask());
    p.Add(BPF_JMP | BPF_JEQ | BPF_K, AF_NETLINK, 0, 4);
    p.Load(LowOf(2));
    p.ReturnIf(0, kAllow);
    p.Add(BPF_JMP | BPF_JA, 1);
    p.Add(BPF_JMP | BPF_JEQ | BPF_K, AF_UNIX, 1, 0);
    p.Return(Errno(EAFNOSUPPORT));
    p.Load(LowOf(1));
    p.Add(BPF_ALU | BPF_AND | BPF_K, kTypeMask);
    p.ReturnIf(SOCK_STREAM, kAllow);
    p.ReturnIf(SOCK_SEQPACKET, kAllow);
    p.Return(Errno(EPERM));
  });
  // One of a pair of datagram sockets sends to any name.
  p.On(SYS_socketpair, [&] {
    p.Load(LowOf(1));
    p.Add(BPF_ALU | BPF_AND | BPF_K, kTypeMask);
    p.ReturnIf(SOCK_STREAM, kAllow);
    p.ReturnIf(SOCK_SEQPACKET, kAllow);
    p.Return(p.ask());
  });
  p.On(SYS_connect, p.ask());
  for (const auto& [call, flags] :
       {std::pair<long, int>{SYS_sendto, 3}, {SYS_sendmsg, 2}, {SYS_sendmmsg, 3}})
    p.On(call, [&, at = flags] {
      p.Load(LowOf(at));
      p.IfAnyOf(kFastOpen);
      p.Return(Errno(EOPNOTSUPP));
      p.Return(kAllow);
    });
}

void AddFiles(Program& p, const FilterRules& rules) {
  for (const long call : kOfFiles) p.On(call, p.ask());
  p.On(SYS_fcntl, [&] {
    p.Load(LowOf(1));
    for (const uint32_t command : {F_SETLK, F_SETLKW, F_OFD_SETLK, F_OFD_SETLKW, F_SETFL})
      p.ReturnIf(command, p.ask());
    for (const uint32_t command : {F_SETLEASE, F_NOTIFY}) p.ReturnIf(command, Errno(EPERM));
    p.Return(kAllow);
  });
  if (rules.landlock_abi >= 3) return;
  p.On(SYS_truncate, p.ask());
  p.On(kSysOpenat2, Errno(ENOSYS));
  for (const auto& [call, flags] : {std::pair<long, int>{SYS_open, 1}, {SYS_openat, 2}})
    p.On(call, [&, at = flags] {
      p.Load(LowOf(at));
      p.Add(BPF_ALU | BPF_AND | BPF_K, O_TRUNC | O_ACCMODE);
      p.ReturnIf(O_TRUNC, Errno(EACCES));  // and O_RDONLY, of which Landlock knows nothing there
      p.Return(kAllow);
    });
}

}  // namespace

std::vector<sock_filter> MakeFenceFilter(const FilterRules& rules) {
  Program p(rules);
  p.Load(offsetof(seccomp_data, arch));
  p.Add(BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_X86_64, 1, 0);
  p.Return(Errno(ENOSYS));  // 32-bit programs have other numbers
  p.Load(offsetof(seccomp_data, nr));
  p.Add(BPF_JMP | BPF_JSET | BPF_K, kX32Bit, 0, 1);
  p.Return(Errno(ENOSYS));
  for (const long call : {kSysGetxattrat, kSysListxattrat, kSysFileGetattr}) p.On(call, kAllow);
  p.Add(BPF_JMP | BPF_JGE | BPF_K, kFirstUnknown, 0, 1);
  p.Return(Errno(ENOSYS));
  for (const Refused& one : kAlways) p.On(one.call, Errno(one.error));
  p.On(SYS_ioctl, [&] {
    p.Load(LowOf(1));
    for (const uint32_t request : kRefusedControls) p.ReturnIf(request, Errno(EPERM));
    for (const uint32_t request : kAllowedOfBtrfs) p.ReturnIf(request, kAllow);
    p.Add(BPF_ALU | BPF_AND | BPF_K, kControlLetter);
    p.ReturnIf(kLetterOfBtrfs, Errno(EPERM));
    p.Return(kAllow);
  });
  AddProcesses(p, rules);
  for (const long call : kOfObjects) p.On(call, p.ask());
  if (!rules.allow_network) AddSockets(p);
  if (!rules.allow_writes) AddFiles(p, rules);
  p.Return(kAllow);
  return p.Take();
}

}  // namespace deja::cli
