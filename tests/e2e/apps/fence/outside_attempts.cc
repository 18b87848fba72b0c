// Tries to change what is outside, by many system calls, each in several ways. These are the C
// library, its syscall(), the instruction itself, and a child. The same program, linked statically,
// has no C library that could be hooked.
//
// usage: outside_attempts WAYS FOLDER PID TCP UDP KEY [STATIC]
//   WAYS    "nothing", or some of "libc,syscall,instruction,child,static"
//   FOLDER  with files a, b, c …; sockets "stream", "datagram"; PID a process; ports; a System V
//   key
// Prints a line an attempt: its way, its name, and what the kernel said.
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <mqueue.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/ipc.h>
#include <sys/mount.h>
#include <sys/msg.h>
#include <sys/resource.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

namespace {

enum class Way { kLibc, kSyscall, kInstruction };
Way way = Way::kLibc;
const char* way_name = "libc";

const char* folder = "";
int other = 0;
uint16_t tcp_port = 0;
uint16_t udp_port = 0;
int key = 0;

long Instruction(long number, long a, long b, long c, long d, long e, long f) {
  register long r10 asm("r10") = d;
  register long r8 asm("r8") = e;
  register long r9 asm("r9") = f;
  long result;
  asm volatile("syscall"
               : "=a"(result)
               : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
               : "rcx", "r11", "memory");
  if (result >= 0 || result < -4095) return result;
  errno = static_cast<int>(-result);
  return -1;
}

template <typename T>
long Word(T value) {
  return (long)value;  // NOLINT: pointers and numbers alike
}

// `libc` where that is the way, else the same call by its number.
template <typename Libc, typename... Arguments>
long Call(Libc libc, long number, Arguments... arguments) {
  const long words[6] = {Word(arguments)...};
  switch (way) {
    case Way::kLibc:
      return libc();
    case Way::kSyscall:
      return syscall(number, words[0], words[1], words[2], words[3], words[4], words[5]);
    default:
      return Instruction(number, words[0], words[1], words[2], words[3], words[4], words[5]);
  }
}
#define CALL(libc, ...) Call([&]() -> long { return (long)(libc); }, __VA_ARGS__)
// For a call for which the C library has no function.
#define RAW(...) Call([&]() -> long { return syscall(__VA_ARGS__); }, __VA_ARGS__)

const char* Path(const char* name) {
  static char paths[4][4096];
  static int next = 0;
  char* path = paths[next++ % 4];
  snprintf(path, sizeof paths[0], "%s/%s", folder, name);
  return path;
}

int ReadOnly(const char* name) {
  return static_cast<int>(CALL(open(Path(name), O_RDONLY), SYS_open, Path(name), O_RDONLY, 0));
}

sockaddr_in Port(uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

sockaddr_un Name(const char* name) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  snprintf(address.sun_path, sizeof address.sun_path, "%s", Path(name));
  return address;
}

int Socket(int domain, int type, int protocol) {
  return static_cast<int>(CALL(socket(domain, type, protocol), SYS_socket, domain, type, protocol));
}

template <typename Address>
long Connect(int fd, const Address& address) {
  return CALL(connect(fd, (const sockaddr*)&address, sizeof address), SYS_connect, fd, &address,
              sizeof address);
}

template <typename Address>
long SendTo(int fd, int flags, const Address& address) {
  return CALL(sendto(fd, "out", 3, flags, (const sockaddr*)&address, sizeof address), SYS_sendto,
              fd, "out", 3, flags, &address, sizeof address);
}

template <typename Address>
long SendMessage(int fd, Address& address) {
  iovec piece{const_cast<char*>("out"), 3};
  msghdr message{};
  message.msg_name = &address;
  message.msg_namelen = sizeof address;
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  return CALL(sendmsg(fd, &message, 0), SYS_sendmsg, fd, &message, 0);
}

constexpr int kInherited = 99;  // a descriptor on a file outside, which the program is born with
const timespec kTimes[2] = {{1, 0}, {2, 0}};

struct Attempt {
  const char* name;
  long (*make)();
};

const Attempt kAttempts[] = {
    {"chmod", [] { return CALL(chmod(Path("a"), 0600), SYS_chmod, Path("a"), 0600); }},
    {"fchmod",
     [] {
       const int fd = ReadOnly("a");
       return CALL(fchmod(fd, 0601), SYS_fchmod, fd, 0601);
     }},
    {"fchmodat",
     [] {
       return CALL(fchmodat(AT_FDCWD, Path("a"), 0602, 0), SYS_fchmodat, AT_FDCWD, Path("a"), 0602);
     }},
    {"fchmodat2", [] { return RAW(452, AT_FDCWD, Path("a"), 0603, 0); }},
    {"chmod by /proc/self/fd",
     [] {
       char name[64];
       snprintf(name, sizeof name, "/proc/self/fd/%d", ReadOnly("a"));
       return CALL(chmod(name, 0604), SYS_chmod, name, 0604);
     }},
    {"chown", [] { return CALL(chown(Path("b"), 1, 1), SYS_chown, Path("b"), 1, 1); }},
    {"fchown",
     [] {
       const int fd = ReadOnly("b");
       return CALL(fchown(fd, getuid(), getgid()), SYS_fchown, fd, getuid(), getgid());
     }},
    {"utimensat",
     [] {
       return CALL(utimensat(AT_FDCWD, Path("c"), kTimes, 0), SYS_utimensat, AT_FDCWD, Path("c"),
                   kTimes, 0);
     }},
    {"futimens",
     [] {
       const int fd = ReadOnly("c");
       return CALL(futimens(fd, kTimes), SYS_utimensat, fd, nullptr, kTimes, 0);
     }},
    {"setxattr",
     [] {
       return CALL(setxattr(Path("d"), "user.out", "x", 1, 0), SYS_setxattr, Path("d"), "user.out",
                   "x", 1, 0);
     }},
    {"fsetxattr",
     [] {
       const int fd = ReadOnly("d");
       return CALL(fsetxattr(fd, "user.out2", "x", 1, 0), SYS_fsetxattr, fd, "user.out2", "x", 1,
                   0);
     }},
    {"setxattrat",
     [] {
       struct {
         uint64_t value;
         uint32_t size;
         uint32_t flags;
       } arguments{(uint64_t) "x", 1, 0};
       return RAW(463, AT_FDCWD, Path("d"), 0, "user.out3", &arguments, sizeof arguments);
     }},
    {"removexattr",
     [] {
       return CALL(removexattr(Path("e"), "user.was"), SYS_removexattr, Path("e"), "user.was");
     }},
    {"fremovexattr",
     [] {
       const int fd = ReadOnly("e");
       return CALL(fremovexattr(fd, "user.was2"), SYS_fremovexattr, fd, "user.was2");
     }},
    {"FS_IOC_SETFLAGS",
     [] {
       const int fd = ReadOnly("f");
       int flags = 0;
       ioctl(fd, FS_IOC_GETFLAGS, &flags);
       flags |= FS_NODUMP_FL;
       return CALL(ioctl(fd, FS_IOC_SETFLAGS, &flags), SYS_ioctl, fd, FS_IOC_SETFLAGS, &flags);
     }},
    {"write",
     [] {
       const int fd = static_cast<int>(
           CALL(open(Path("g"), O_WRONLY | O_APPEND), SYS_open, Path("g"), O_WRONLY | O_APPEND, 0));
       return CALL(write(fd, "out", 3), SYS_write, fd, "out", 3);
     }},
    {"open with O_TRUNC",
     [] {
       return CALL(open(Path("g"), O_RDONLY | O_TRUNC), SYS_open, Path("g"), O_RDONLY | O_TRUNC, 0);
     }},
    {"truncate", [] { return CALL(truncate(Path("g"), 1), SYS_truncate, Path("g"), 1); }},
    {"create",
     [] {
       return CALL(open(Path("new"), O_WRONLY | O_CREAT, 0644), SYS_open, Path("new"),
                   O_WRONLY | O_CREAT, 0644);
     }},
    {"unlink", [] { return CALL(unlink(Path("h")), SYS_unlink, Path("h")); }},
    {"rename", [] { return CALL(rename(Path("i"), Path("j")), SYS_rename, Path("i"), Path("j")); }},
    {"mkdir", [] { return CALL(mkdir(Path("k"), 0755), SYS_mkdir, Path("k"), 0755); }},
    {"symlink", [] { return CALL(symlink("a", Path("l")), SYS_symlink, "a", Path("l")); }},
    {"link", [] { return CALL(link(Path("a"), Path("m")), SYS_link, Path("a"), Path("m")); }},
    {"mknod",
     [] {
       return CALL(mknod(Path("n"), S_IFIFO | 0644, 0), SYS_mknod, Path("n"), S_IFIFO | 0644, 0);
     }},
    {"write to an inherited descriptor",
     [] { return CALL(write(kInherited, "out", 3), SYS_write, kInherited, "out", 3); }},
    {"mount",
     [] {
       return CALL(mount("none", folder, "tmpfs", 0, nullptr), SYS_mount, "none", folder, "tmpfs",
                   0, nullptr);
     }},
    {"kill", [] { return CALL(kill(other, SIGKILL), SYS_kill, other, SIGKILL); }},
    {"pidfd_send_signal",
     [] {
       const long fd = syscall(SYS_pidfd_open, other, 0);
       return RAW(SYS_pidfd_send_signal, fd, SIGKILL, nullptr, 0);
     }},
    {"prlimit",
     [] {
       const rlimit limit{777, 777};
       return CALL(prlimit(other, RLIMIT_NOFILE, &limit, nullptr), SYS_prlimit64, other,
                   RLIMIT_NOFILE, &limit, nullptr);
     }},
    {"setpriority",
     [] {
       return CALL(setpriority(PRIO_PROCESS, static_cast<id_t>(other), 7), SYS_setpriority,
                   PRIO_PROCESS, other, 7);
     }},
    {"sched_setaffinity",
     [] {
       cpu_set_t set;
       CPU_ZERO(&set);
       CPU_SET(0, &set);
       return RAW(SYS_sched_setaffinity, other, sizeof set, &set);
     }},
    {"sched_setscheduler",
     [] {
       const sched_param parameters{};
       return RAW(SYS_sched_setscheduler, other, SCHED_BATCH, &parameters);
     }},
    {"ioprio_set", [] { return RAW(SYS_ioprio_set, 1, other, 3 << 13); }},
    {"ptrace", [] { return RAW(SYS_ptrace, 0x4206, other, 0, 0); }},
    {"shared memory of System V",
     [] {
       const long id = CALL(shmget(key, 4096, 0), SYS_shmget, key, 4096, 0);
       const long at = CALL(shmat((int)id, nullptr, 0), SYS_shmat, id, nullptr, 0);
       if (at == -1) return -1L;
       *reinterpret_cast<char*>(at) = 'x';
       return 0L;
     }},
    {"a message of System V",
     [] {
       struct {
         long type;
         char text[8];
       } message{1, "out"};
       const long id = CALL(msgget(key, 0), SYS_msgget, key, 0);
       return CALL(msgsnd((int)id, &message, 8, IPC_NOWAIT), SYS_msgsnd, id, &message, 8,
                   IPC_NOWAIT);
     }},
    {"a semaphore of System V",
     [] {
       sembuf up{0, 1, 0};
       const long id = CALL(semget(key, 1, 0), SYS_semget, key, 1, 0);
       return CALL(semop((int)id, &up, 1), SYS_semop, id, &up, 1);
     }},
    {"a message of POSIX",
     [] {
       char name[64];
       snprintf(name, sizeof name, "deja-%d", key);
       const long queue = RAW(SYS_mq_open, name, O_WRONLY | O_NONBLOCK, 0, nullptr);
       return RAW(SYS_mq_timedsend, queue, "out", 3, 0, nullptr);
     }},
    {"add_key",
     [] {
       char name[64];
       snprintf(name, sizeof name, "deja-%d", key);
       return RAW(SYS_add_key, "user", name, "out", 3, -4);
     }},
    {"TCP", [] { return Connect(Socket(AF_INET, SOCK_STREAM, 0), Port(tcp_port)); }},
    {"TCP Fast Open",
     [] { return SendTo(Socket(AF_INET, SOCK_STREAM, 0), MSG_FASTOPEN, Port(tcp_port)); }},
    {"MPTCP", [] { return Connect(Socket(AF_INET, SOCK_STREAM, 262), Port(tcp_port)); }},
    {"UDP", [] { return SendTo(Socket(AF_INET, SOCK_DGRAM, 0), 0, Port(udp_port)); }},
    {"UDP by sendmsg",
     [] {
       sockaddr_in address = Port(udp_port);
       return SendMessage(Socket(AF_INET, SOCK_DGRAM, 0), address);
     }},
    {"a raw socket",
     [] {
       // A datagram of UDP, made by hand: ports, length, no checksum.
       uint16_t datagram[5] = {htons(9), htons(udp_port), htons(10), 0, htons(0x6f75)};
       const sockaddr_in to = Port(0);
       const int fd = Socket(AF_INET, SOCK_RAW, IPPROTO_UDP);
       return CALL(sendto(fd, datagram, sizeof datagram, 0, (const sockaddr*)&to, sizeof to),
                   SYS_sendto, fd, datagram, sizeof datagram, 0, &to, sizeof to);
     }},
    {"a Unix socket", [] { return Connect(Socket(AF_UNIX, SOCK_STREAM, 0), Name("stream")); }},
    {"a Unix datagram", [] { return SendTo(Socket(AF_UNIX, SOCK_DGRAM, 0), 0, Name("datagram")); }},
    {"a Unix datagram from a pair",
     [] {
       int ends[2] = {-1, -1};
       CALL(socketpair(AF_UNIX, SOCK_DGRAM, 0, ends), SYS_socketpair, AF_UNIX, SOCK_DGRAM, 0, ends);
       sockaddr_un address = Name("datagram");
       return SendMessage(ends[0], address);
     }},
    {"io_uring",
     [] {
       char parameters[120] = {};
       return RAW(SYS_io_uring_setup, 1, parameters);
     }},
    {"bpf", [] { return RAW(SYS_bpf, 0, nullptr, 0); }},
};

void MakeAll(const char* name, Way how) {
  way = how;
  way_name = name;
  for (const Attempt& attempt : kAttempts) {
    errno = 0;
    const long result = attempt.make();
    printf("%s: %s: %s\n", way_name, attempt.name, result >= 0 ? "done" : strerror(errno));
  }
  fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 7) return 2;
  signal(SIGPIPE, SIG_IGN);
  folder = argv[2];
  other = atoi(argv[3]);
  tcp_port = static_cast<uint16_t>(atoi(argv[4]));
  udp_port = static_cast<uint16_t>(atoi(argv[5]));
  key = atoi(argv[6]);
  const auto wants = [&](const char* name) { return strstr(argv[1], name) != nullptr; };
  if (wants("libc")) MakeAll("libc", Way::kLibc);
  if (wants("syscall")) MakeAll("syscall", Way::kSyscall);
  if (wants("instruction")) MakeAll("instruction", Way::kInstruction);
  if (wants("child") && fork() == 0) {
    MakeAll("child", Way::kInstruction);
    _exit(0);
  }
  while (wait(nullptr) > 0) {
  }
  if (!wants("static") || argc < 8) return 0;
  const pid_t child = fork();
  if (child == 0) {
    execl(argv[7], argv[7], "instruction", argv[2], argv[3], argv[4], argv[5], argv[6], nullptr);
    _exit(127);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
