#include "cli/fence/fence_answers.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/seccomp.h>
#include <mqueue.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/ipc.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/xattr.h>
#include <unistd.h>
#include <utime.h>

#include <cerrno>
#include <climits>
#include <cstring>
#include <fstream>
#include <optional>
#include <string_view>
#include <utility>

#include "cli/fence/late_syscalls.h"

namespace deja::cli {
namespace {

constexpr uint32_t kContinue = 1;     // SECCOMP_USER_NOTIF_FLAG_CONTINUE
constexpr size_t kMostValue = 65536;  // of an extended attribute: XATTR_SIZE_MAX
constexpr std::string_view kFamilyName = "deja-replay-";  // replayer/sockets/family_sockets.cc

class OwnedFd {
 public:
  explicit OwnedFd(int fd) : fd_(fd) {}
  ~OwnedFd() {
    if (fd_ >= 0) close(fd_);
  }
  OwnedFd(const OwnedFd&) = delete;
  OwnedFd& operator=(const OwnedFd&) = delete;
  [[nodiscard]] int get() const { return fd_; }

 private:
  const int fd_;
};

// What a call comes to: a result, or that the kernel goes on with it.
struct Outcome {
  int64_t result = 0;
  bool goes_on = false;
};
Outcome WithErrno(int error) {
  return {-error, false};
}
// The outcome of a system call that this process has just made.
Outcome Told(int64_t result) {
  return {result < 0 ? -errno : result, false};
}
constexpr Outcome kGoesOn{0, true};

std::string SelfPath(int fd) {
  return fmt::format("/proc/self/fd/{}", fd);
}

std::string LinkText(const std::string& path) {
  char text[PATH_MAX];
  const ssize_t n = readlink(path.c_str(), text, sizeof text);
  return n <= 0 ? std::string() : std::string(text, static_cast<size_t>(n));
}

// The number after "NAME:" in /proc/PID/status; -1: there is none.
long StatusNumber(pid_t pid, std::string_view name) {
  std::ifstream status(fmt::format("/proc/{}/status", pid));
  for (std::string line; std::getline(status, line);)
    if (line.compare(0, name.size(), name) == 0 && line.size() > name.size() &&
        line[name.size()] == ':')
      return strtol(line.c_str() + name.size() + 1, nullptr, 10);
  return -1;
}

// A process of a replay: it has more filters than we have, and comes from us.
bool IsReplayed(pid_t pid) {
  constexpr int kMostGenerations = 1000;
  constexpr const char* kFilters = "Seccomp_filters";
  long own = StatusNumber(getpid(), kFilters);
  long theirs = StatusNumber(pid, kFilters);
  if (theirs < 0) {  // kernels before 5.9
    own = StatusNumber(getpid(), "Seccomp");
    theirs = StatusNumber(pid, "Seccomp");
  }
  if (theirs <= own) return false;
  for (int i = 0; i < kMostGenerations && pid > 1; ++i) {
    if (pid == getpid()) return true;
    pid = static_cast<pid_t>(StatusNumber(pid, "PPid"));
  }
  return false;
}

// One call of one thread.
class Question {
 public:
  Question(int listener, const seccomp_notif& notif, const std::vector<std::string>& own,
           FenceObjects& objects)
      : listener_(listener), notif_(notif), own_(own), objects_(objects) {}

  Outcome Find();

 private:
  [[nodiscard]] uint64_t Argument(int i) const { return notif_.data.args[i]; }
  [[nodiscard]] int Int(int i) const { return static_cast<int>(Argument(i)); }
  [[nodiscard]] pid_t thread() const { return static_cast<pid_t>(notif_.pid); }
  [[nodiscard]] pid_t ThreadGroup() const;

  // Access to the thread's memory. The thread still waits, so no other thread can have its number.
  bool Read(uint64_t address, void* to, size_t size) const;
  [[nodiscard]] std::optional<std::string> ReadString(uint64_t address, size_t most) const;
  bool Write(uint64_t address, const void* from, size_t size) const;
  [[nodiscard]] bool IsValid() const;

  // A descriptor of ours of the file that is meant (O_PATH); -1 and errno.
  [[nodiscard]] int OpenNumber(int fd) const;
  [[nodiscard]] int OpenPath(int dirfd, uint64_t path, bool follows) const;
  // As the thread would find it, from its working directory.
  [[nodiscard]] int OpenName(const std::string& path) const;
  // Whether it is in one of the replay's folders, or in none at all.
  [[nodiscard]] bool IsOwn(int fd) const;

  // `act(path, descriptor)` on the file that a descriptor or a path names, if that is the replay's.
  template <typename Act>
  Outcome OnFile(int opened, Act act) const;
  template <typename Act>
  Outcome OnNumber(int fd, Act act) const {
    return OnFile(OpenNumber(fd), act);
  }
  template <typename Act>
  Outcome OnPath(int dirfd, uint64_t path, bool follows, Act act) const {
    return OnFile(OpenPath(dirfd, path, follows), act);
  }

  Outcome ChangeMode();
  Outcome ChangeOwner();
  Outcome ChangeTimes();
  Outcome SetAttribute();
  Outcome RemoveAttribute();
  Outcome Lock() const;
  Outcome Control() const;
  Outcome Resize() const;
  Outcome OtherProcess(int argument) const;
  Outcome Object(FenceObjects::Kind kind, int control) const;
  Outcome Queue();
  Outcome MakeSocket() const;
  Outcome MakePair() const;
  Outcome Connect() const;
  // Puts a descriptor of ours into the thread's process; the result is its number there.
  [[nodiscard]] int64_t Give(int fd, bool close_on_exec) const;

  const int listener_;
  const seccomp_notif& notif_;
  const std::vector<std::string>& own_;
  FenceObjects& objects_;
};

bool Question::IsValid() const {
  return ioctl(listener_, SECCOMP_IOCTL_NOTIF_ID_VALID, &notif_.id) == 0;
}

bool Question::Read(uint64_t address, void* to, size_t size) const {
  const iovec local{to, size};
  const iovec remote{reinterpret_cast<void*>(address), size};
  return process_vm_readv(thread(), &local, 1, &remote, 1, 0) == static_cast<ssize_t>(size) &&
         IsValid();
}

bool Question::Write(uint64_t address, const void* from, size_t size) const {
  const iovec local{const_cast<void*>(from), size};
  const iovec remote{reinterpret_cast<void*>(address), size};
  return process_vm_writev(thread(), &local, 1, &remote, 1, 0) == static_cast<ssize_t>(size);
}

std::optional<std::string> Question::ReadString(uint64_t address, size_t most) const {
  constexpr uint64_t kPage = 4096;
  std::string text;
  while (text.size() < most) {
    char piece[kPage];
    const size_t size = kPage - (address + text.size()) % kPage;  // not beyond what is mapped
    if (!Read(address + text.size(), piece, size)) return std::nullopt;
    const size_t length = strnlen(piece, size);
    text.append(piece, length);
    if (length < size) return text.size() < most ? std::optional(text) : std::nullopt;
  }
  return std::nullopt;
}

int Question::OpenNumber(int fd) const {
  const int opened = open(fmt::format("/proc/{}/fd/{}", thread(), fd).c_str(), O_PATH | O_CLOEXEC);
  if (opened < 0) errno = EBADF;
  return opened;
}

int Question::OpenPath(int dirfd, uint64_t address, bool follows) const {
  std::optional<std::string> path = ReadString(address, PATH_MAX);
  if (!path) {
    errno = EFAULT;
    return -1;
  }
  if (path->empty()) {
    errno = ENOENT;
    return -1;
  }
  // What is the thread's own there is another process's for us.
  for (const auto& [from, to] :
       {std::pair<std::string_view, std::string>{"/proc/self/", fmt::format("/proc/{}/", thread())},
        {"/proc/thread-self/", fmt::format("/proc/{}/", thread())},
        {"/dev/fd/", fmt::format("/proc/{}/fd/", thread())}})
    if (path->compare(0, from.size(), from) == 0) path = to + path->substr(from.size());
  const std::string base = dirfd == AT_FDCWD ? fmt::format("/proc/{}/cwd", thread())
                                             : fmt::format("/proc/{}/fd/{}", thread(), dirfd);
  const OwnedFd folder(path->front() == '/' ? -1 : open(base.c_str(), O_PATH | O_CLOEXEC));
  if (path->front() != '/' && folder.get() < 0) {
    errno = EBADF;
    return -1;
  }
  return openat(folder.get(), path->c_str(), O_PATH | O_CLOEXEC | (follows ? 0 : O_NOFOLLOW));
}

int Question::OpenName(const std::string& path) const {
  const OwnedFd folder(
      open(fmt::format("/proc/{}/cwd", thread()).c_str(), O_PATH | O_CLOEXEC | O_DIRECTORY));
  return openat(folder.get(), path.c_str(), O_PATH | O_CLOEXEC);
}

bool Question::IsOwn(int fd) const {
  const std::string name = LinkText(SelfPath(fd));
  if (name.empty() || name[0] != '/') return !name.empty();  // a pipe, a socket
  struct stat info {};
  if (fstat(fd, &info) == 0 && info.st_nlink == 0) return true;  // memory, or what is removed
  for (const std::string& folder : own_)
    if (name.compare(0, folder.size(), folder) == 0 &&
        (name.size() == folder.size() || name[folder.size()] == '/'))
      return true;
  return false;
}

template <typename Act>
Outcome Question::OnFile(int opened, Act act) const {
  if (opened < 0) return WithErrno(errno);
  const OwnedFd file(opened);
  if (!IsValid()) return WithErrno(EINTR);
  if (!IsOwn(file.get())) return WithErrno(EPERM);
  return Told(act(SelfPath(file.get()).c_str(), file.get()));
}

Outcome Question::ChangeMode() {
  const auto change = [&](int argument) {
    return [mode = static_cast<mode_t>(Argument(argument))](const char* path, int) {
      return chmod(path, mode);
    };
  };
  switch (notif_.data.nr) {
    case SYS_fchmod:
      return OnNumber(Int(0), change(1));
    case SYS_chmod:
      return OnPath(AT_FDCWD, Argument(0), true, change(1));
    case SYS_fchmodat:
      return OnPath(Int(0), Argument(1), true, change(2));
    default: {  // fchmodat2
      const int flags = Int(3);
      std::optional<std::string> path = ReadString(Argument(1), PATH_MAX);
      if (path && path->empty() && (flags & AT_EMPTY_PATH) != 0) return OnNumber(Int(0), change(2));
      return OnPath(Int(0), Argument(1), (flags & AT_SYMLINK_NOFOLLOW) == 0, change(2));
    }
  }
}

Outcome Question::ChangeOwner() {
  const auto change = [&](int argument) {
    return [user = static_cast<uid_t>(Argument(argument)),
            group = static_cast<gid_t>(Argument(argument + 1))](const char*, int fd) {
      return fchownat(fd, "", user, group, AT_EMPTY_PATH);
    };
  };
  switch (notif_.data.nr) {
    case SYS_fchown:
      return OnNumber(Int(0), change(1));
    case SYS_chown:
    case SYS_lchown:
      return OnPath(AT_FDCWD, Argument(0), notif_.data.nr == SYS_chown, change(1));
    default: {  // fchownat
      const int flags = Int(4);
      std::optional<std::string> path = ReadString(Argument(1), PATH_MAX);
      if (path && path->empty() && (flags & AT_EMPTY_PATH) != 0)
        return Int(0) == AT_FDCWD ? WithErrno(EPERM) : OnNumber(Int(0), change(2));
      return OnPath(Int(0), Argument(1), (flags & AT_SYMLINK_NOFOLLOW) == 0, change(2));
    }
  }
}

Outcome Question::ChangeTimes() {
  const bool is_utime = notif_.data.nr == SYS_utime;
  const bool at = notif_.data.nr == SYS_utimensat || notif_.data.nr == SYS_futimesat;
  const int path_argument = at ? 1 : 0;
  const uint64_t address = Argument(path_argument + 1);
  timespec times[2] = {{0, UTIME_NOW}, {0, UTIME_NOW}};
  if (address != 0 && is_utime) {
    utimbuf told{};
    if (!Read(address, &told, sizeof told)) return WithErrno(EFAULT);
    times[0] = {told.actime, 0};
    times[1] = {told.modtime, 0};
  } else if (address != 0 && notif_.data.nr == SYS_utimensat) {
    if (!Read(address, times, sizeof times)) return WithErrno(EFAULT);
  } else if (address != 0) {
    timeval told[2];
    if (!Read(address, told, sizeof told)) return WithErrno(EFAULT);
    for (int i = 0; i < 2; ++i) times[i] = {told[i].tv_sec, told[i].tv_usec * 1000};
  }
  const auto change = [&](const char* path, int fd) {
    struct stat info {};
    if (fstat(fd, &info) == 0 && S_ISLNK(info.st_mode))
      return utimensat(fd, "", times, AT_EMPTY_PATH);
    return utimensat(AT_FDCWD, path, times, 0);
  };
  if (!at) return OnPath(AT_FDCWD, Argument(0), true, change);
  if (Argument(1) == 0) return OnNumber(Int(0), change);  // futimens
  const int flags = notif_.data.nr == SYS_utimensat ? Int(3) : 0;
  return OnPath(Int(0), Argument(1), (flags & AT_SYMLINK_NOFOLLOW) == 0, change);
}

Outcome Question::SetAttribute() {
  const std::optional<std::string> name = ReadString(Argument(1), NAME_MAX + 2);
  const uint64_t size = Argument(3);
  if (!name) return WithErrno(ERANGE);
  if (size > kMostValue) return WithErrno(E2BIG);
  std::string value(size, '\0');
  if (size != 0 && !Read(Argument(2), value.data(), size)) return WithErrno(EFAULT);
  const auto change = [&](const char* path, int) {
    return setxattr(path, name->c_str(), value.data(), size, Int(4));
  };
  if (notif_.data.nr == SYS_fsetxattr) return OnNumber(Int(0), change);
  return OnPath(AT_FDCWD, Argument(0), notif_.data.nr == SYS_setxattr, change);
}

Outcome Question::RemoveAttribute() {
  const std::optional<std::string> name = ReadString(Argument(1), NAME_MAX + 2);
  if (!name) return WithErrno(ERANGE);
  const auto change = [&](const char* path, int) { return removexattr(path, name->c_str()); };
  if (notif_.data.nr == SYS_fremovexattr) return OnNumber(Int(0), change);
  return OnPath(AT_FDCWD, Argument(0), notif_.data.nr == SYS_removexattr, change);
}

// A replay holds no lock of a file outside its scratch folder, and waits for none: it changes
// nothing there.
Outcome Question::Lock() const {
  const OwnedFd file(OpenNumber(Int(0)));
  if (file.get() < 0) return WithErrno(EBADF);
  return IsOwn(file.get()) ? kGoesOn : Outcome{0, false};
}

Outcome Question::Control() const {
  if (Int(1) != F_SETFL) return Lock();
  const OwnedFd file(OpenNumber(Int(0)));
  if (file.get() < 0) return WithErrno(EBADF);
  // What was there before in the file that the output goes to is not written over.
  const bool appends = (Argument(2) & O_APPEND) != 0;
  struct stat info {};
  const bool is_file = fstat(file.get(), &info) == 0 && S_ISREG(info.st_mode);
  return appends || !is_file || IsOwn(file.get()) ? kGoesOn : Outcome{0, false};
}

Outcome Question::Resize() const {
  if (notif_.data.nr == SYS_truncate)
    return OnPath(AT_FDCWD, Argument(0), true, [&](const char* path, int) {
      return truncate(path, static_cast<off_t>(Argument(1)));
    });
  const OwnedFd file(OpenNumber(Int(0)));
  if (file.get() < 0) return WithErrno(EBADF);
  return IsOwn(file.get()) ? kGoesOn : WithErrno(EPERM);
}

Outcome Question::OtherProcess(int argument) const {
  const int pid = Int(argument);
  return pid > 0 && IsReplayed(pid) ? kGoesOn : WithErrno(EPERM);
}

// `control`: the argument that holds the command of a call that controls; -1: it is none.
Outcome Question::Object(FenceObjects::Kind kind, int control) const {
  constexpr int kInfo = 3;  // IPC_INFO, of the whole machine
  const int command = control < 0 ? -1 : Int(control) & 0xff;
  if (command == kInfo) return kGoesOn;
  if (!objects_.IsOwn(kind, Int(0))) return WithErrno(EINVAL);
  if (control >= 0 && command == IPC_RMID) objects_.Forget(kind, Int(0));
  return kGoesOn;
}

Outcome Question::Queue() {
  const std::optional<std::string> name = ReadString(Argument(0), NAME_MAX);
  if (!name) return WithErrno(ENAMETOOLONG);
  if (name->empty() || name->find('/') != std::string::npos) return WithErrno(EACCES);
  if (notif_.data.nr == SYS_mq_unlink) return {objects_.RemoveQueue(*name), false};
  mq_attr attributes{};
  const bool has_attributes = Argument(3) != 0;
  if (has_attributes && !Read(Argument(3), &attributes, sizeof attributes))
    return WithErrno(EFAULT);
  const int64_t queue = objects_.OpenQueue(*name, Int(1), static_cast<unsigned>(Argument(2)),
                                           has_attributes ? &attributes : nullptr);
  if (queue < 0) return {queue, false};
  const OwnedFd ours(static_cast<int>(queue));
  return {Give(ours.get(), true), false};
}

int64_t Question::Give(int fd, bool close_on_exec) const {
  seccomp_notif_addfd added{};
  added.id = notif_.id;
  added.srcfd = static_cast<uint32_t>(fd);
  added.newfd_flags = close_on_exec ? O_CLOEXEC : 0;
  const int given = ioctl(listener_, SECCOMP_IOCTL_NOTIF_ADDFD, &added);
  return given < 0 ? -EPERM : given;
}

// A socket of the internet answers questions about the machine's interfaces. One of TCP does not
// reach another process (Connect, Landlock), and stands for one of UDP.
Outcome Question::MakeSocket() const {
  constexpr int kKind = 0xf;
  const int kind = Int(1) & kKind;
  const int protocol = Int(2);
  const bool is_tcp = kind == SOCK_STREAM && (protocol == 0 || protocol == IPPROTO_TCP);
  const bool is_udp = kind == SOCK_DGRAM && (protocol == 0 || protocol == IPPROTO_UDP);
  if (is_tcp) return kGoesOn;
  if (!is_udp) return WithErrno(EPERM);
  const OwnedFd made(
      socket(Int(0), SOCK_STREAM | SOCK_CLOEXEC | (Int(1) & SOCK_NONBLOCK), IPPROTO_TCP));
  if (made.get() < 0) return WithErrno(errno);
  return {Give(made.get(), (Int(1) & SOCK_CLOEXEC) != 0), false};
}

// Messages keep their borders in it, too; but it sends to its other end alone.
Outcome Question::MakePair() const {
  constexpr int kKind = 0xf;
  if (Int(0) != AF_UNIX || (Int(1) & kKind) != SOCK_DGRAM) return WithErrno(EPERM);
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | (Int(1) & SOCK_NONBLOCK), 0, ends) != 0)
    return WithErrno(errno);
  const OwnedFd first(ends[0]);
  const OwnedFd second(ends[1]);
  const bool close_on_exec = (Int(1) & SOCK_CLOEXEC) != 0;
  int given[2];
  for (int i = 0; i < 2; ++i) {
    const int64_t fd = Give(ends[i], close_on_exec);
    if (fd < 0) return {fd, false};
    given[i] = static_cast<int>(fd);
  }
  return Write(Argument(3), given, sizeof given) ? Outcome{0, false} : WithErrno(EFAULT);
}

// Processes of a replay meet at names of the replay library's (replayer/sockets/family_sockets.h),
// ranks that compute at files in a folder of theirs (loopback/ranks/rendezvous.h).
Outcome Question::Connect() const {
  constexpr size_t kPath = offsetof(sockaddr_un, sun_path);
  sockaddr_un name{};
  uint64_t size = Argument(2);
  if (size < sizeof(sa_family_t)) return WithErrno(EINVAL);
  if (size > sizeof name || !Read(Argument(1), &name, size)) return WithErrno(ECONNREFUSED);
  if (name.sun_family != AF_UNIX || size <= kPath + 1) return WithErrno(ECONNREFUSED);
  const bool has_file = name.sun_path[0] != '\0';
  const std::string path(name.sun_path, strnlen(name.sun_path, size - kPath));
  const OwnedFd file(has_file ? OpenName(path) : -1);
  if (has_file) {
    if (file.get() < 0 || !IsOwn(file.get())) return WithErrno(ECONNREFUSED);
    name = {};
    name.sun_family = AF_UNIX;
    const std::string own = SelfPath(file.get());
    own.copy(name.sun_path, sizeof name.sun_path - 1);
    size = kPath + own.size() + 1;
  } else if (size <= kPath + 1 + kFamilyName.size() ||
             std::string_view(name.sun_path + 1, kFamilyName.size()) != kFamilyName) {
    return WithErrno(ECONNREFUSED);
  }
  const OwnedFd process(static_cast<int>(syscall(SYS_pidfd_open, ThreadGroup(), 0)));
  if (process.get() < 0) return WithErrno(EPERM);
  const OwnedFd socket(static_cast<int>(syscall(kSysPidfdGetfd, process.get(), Int(0), 0)));
  if (socket.get() < 0) return WithErrno(errno == EBADF ? EBADF : EPERM);
  if (!IsValid()) return WithErrno(EINTR);
  return Told(connect(socket.get(), reinterpret_cast<const sockaddr*>(&name),
                      static_cast<socklen_t>(size)));
}

pid_t Question::ThreadGroup() const {
  return static_cast<pid_t>(StatusNumber(thread(), "Tgid"));
}

Outcome Question::Find() {
  using Kind = FenceObjects::Kind;
  switch (notif_.data.nr) {
    case SYS_chmod:
    case SYS_fchmod:
    case SYS_fchmodat:
    case kSysFchmodat2:
      return ChangeMode();
    case SYS_chown:
    case SYS_fchown:
    case SYS_lchown:
    case SYS_fchownat:
      return ChangeOwner();
    case SYS_utime:
    case SYS_utimes:
    case SYS_futimesat:
    case SYS_utimensat:
      return ChangeTimes();
    case SYS_setxattr:
    case SYS_lsetxattr:
    case SYS_fsetxattr:
      return SetAttribute();
    case SYS_removexattr:
    case SYS_lremovexattr:
    case SYS_fremovexattr:
      return RemoveAttribute();
    case SYS_flock:
      return Lock();
    case SYS_fcntl:
      return Control();
    case SYS_truncate:
    case SYS_ftruncate:
    case SYS_fallocate:
      return Resize();
    case SYS_setpriority:
    case SYS_ioprio_set:
      return OtherProcess(1);
    case SYS_sched_setaffinity:
    case SYS_sched_setscheduler:
    case SYS_sched_setparam:
    case SYS_sched_setattr:
    case SYS_prlimit64:
    case SYS_kill:
    case SYS_tkill:
    case SYS_tgkill:
    case SYS_rt_sigqueueinfo:
    case SYS_rt_tgsigqueueinfo:
      return OtherProcess(0);
    case SYS_shmget:
      return {objects_.Get(Kind::kMemory, Int(0), Argument(1), Int(2)), false};
    case SYS_msgget:
      return {objects_.Get(Kind::kMessages, Int(0), 0, Int(1)), false};
    case SYS_semget:
      return {objects_.Get(Kind::kSemaphores, Int(0), Argument(1), Int(2)), false};
    case SYS_shmat:
      return Object(Kind::kMemory, -1);
    case SYS_shmctl:
      return Object(Kind::kMemory, 1);
    case SYS_msgsnd:
    case SYS_msgrcv:
      return Object(Kind::kMessages, -1);
    case SYS_msgctl:
      return Object(Kind::kMessages, 1);
    case SYS_semop:
    case SYS_semtimedop:
      return Object(Kind::kSemaphores, -1);
    case SYS_semctl:
      return Object(Kind::kSemaphores, 2);
    case SYS_mq_open:
    case SYS_mq_unlink:
      return Queue();
    case SYS_socket:
      return MakeSocket();
    case SYS_socketpair:
      return MakePair();
    case SYS_connect:
      return Connect();
    default:
      return WithErrno(EPERM);
  }
}

}  // namespace

FenceAnswers::FenceAnswers(std::vector<std::string> own) : own_(std::move(own)) {}

void FenceAnswers::Answer(int listener) {
  seccomp_notif notif{};
  if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &notif) != 0) return;
  const Outcome outcome = Question(listener, notif, own_, objects_).Find();
  seccomp_notif_resp answer{};
  answer.id = notif.id;
  if (outcome.goes_on)
    answer.flags = kContinue;
  else if (outcome.result < 0)
    answer.error = static_cast<int32_t>(outcome.result);
  else
    answer.val = outcome.result;
  // The asking thread may have ended meanwhile.
  ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &answer);
}

}  // namespace deja::cli
