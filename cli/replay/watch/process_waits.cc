#include "cli/replay/watch/process_waits.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/futex.h>
#include <poll.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <sstream>

#include "cli/child_processes.h"

namespace deja::cli {
namespace {

std::string ReadText(const std::string& path) {
  std::ifstream in(path);
  std::ostringstream text;
  text << in.rdbuf();
  return in ? text.str() : "";
}

std::string LinkText(const std::string& path) {
  std::array<char, 256> text{};
  const ssize_t n = readlink(path.c_str(), text.data(), text.size());
  return n > 0 ? std::string(text.data(), static_cast<size_t>(n)) : "";
}

std::string FileOf(pid_t pid, uint64_t fd) {
  return LinkText(fmt::format("/proc/{}/fd/{}", pid, fd));
}

std::vector<pid_t> NumbersIn(const std::string& folder) {
  std::vector<pid_t> numbers;
  const std::unique_ptr<DIR, int (*)(DIR*)> dir(opendir(folder.c_str()), closedir);
  while (const dirent* entry = dir ? readdir(dir.get()) : nullptr)
    if (const int number = std::atoi(entry->d_name); number > 0 || entry->d_name[0] == '0')
      numbers.push_back(number);
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

// The value of "NAME:\t…" in /proc/PID/status.
std::string Field(const std::string& status, const std::string& name) {
  const size_t at = status.find("\n" + name + ":");
  if (at == std::string::npos) return "";
  const size_t begin = status.find_first_not_of(" \t", at + name.size() + 2);
  return status.substr(begin, status.find('\n', begin) - begin);
}

// A system call that a thread stands in.
struct Standing {
  long call = -1;
  std::array<uint64_t, 6> args{};
};

// False: it runs, or the kernel does not say.
bool ReadCall(pid_t pid, pid_t tid, Standing& standing) {
  std::istringstream text(ReadText(fmt::format("/proc/{}/task/{}/syscall", pid, tid)));
  if (!(text >> standing.call) || standing.call < 0) return false;
  for (uint64_t& arg : standing.args) {
    std::string hex;
    if (!(text >> hex)) return false;
    arg = std::strtoull(hex.c_str(), nullptr, 16);
  }
  return true;
}

class Waits {
 public:
  Waits(pid_t pid, const OutsideFiles& outside) : pid_(pid), outside_(outside) {}

  // Fills in `kind` and `what`.
  void Judge(const Standing& at, ThreadWait& thread) const {
    thread.kind = WaitKind::kNone;
    switch (at.call) {
      case SYS_read:
      case SYS_readv:
        return File(at, "reads", thread);
      case SYS_write:
      case SYS_writev:
        return File(at, "writes to", thread);
      case SYS_recvfrom:
      case SYS_recvmsg:
        return File(at, "receives from", thread);
      case SYS_sendto:
      case SYS_sendmsg:
        return File(at, "sends to", thread);
      case SYS_accept:
      case SYS_accept4:
        return File(at, "accepts a connection of", thread);
      case SYS_futex:
        return Futex(at, thread);
      case SYS_wait4:
      case SYS_waitid: {
        const uint64_t options = at.call == SYS_wait4 ? at.args[2] : at.args[3];
        if ((options & WNOHANG) == 0) return Endless("waits for a child to end", thread);
        return;
      }
      case SYS_rt_sigsuspend:
#ifdef SYS_pause
      case SYS_pause:
#endif
        return Endless("waits for a signal", thread);
      case SYS_clock_nanosleep:
      case SYS_nanosleep:
        return Timed("sleeps", thread);
      case SYS_rt_sigtimedwait:
        if (at.args[2] != 0) Timed("waits for a signal, for a time", thread);
        return;
      case SYS_pselect6:
        if (at.args[4] != 0) Timed("waits for files, for a time", thread);
        return;
#ifdef SYS_poll
      case SYS_poll:
        return Poll(at, static_cast<int32_t>(at.args[2]) < 0, thread);
#endif
      case SYS_ppoll:
        return Poll(at, at.args[2] == 0, thread);
#ifdef SYS_epoll_wait
      case SYS_epoll_wait:
#endif
      case SYS_epoll_pwait:
        return Epoll(at, static_cast<int32_t>(at.args[3]) < 0, thread);
      default:
        return;
    }
  }

 private:
  static void Endless(std::string what, ThreadWait& thread) {
    thread.kind = WaitKind::kEndless;
    thread.what = std::move(what);
  }

  static void Timed(std::string what, ThreadWait& thread) {
    thread.kind = WaitKind::kTimed;
    thread.what = std::move(what);
  }

  // Only these processes can make it ready.
  [[nodiscard]] bool IsOurs(const std::string& file) const {
    if (outside_.files.count(file) != 0) return false;
    return file.rfind("pipe:", 0) == 0 || file == "anon_inode:[eventfd]" ||
           (file.rfind("socket:", 0) == 0 && !outside_.sockets);
  }

  void File(const Standing& at, const char* verb, ThreadWait& thread) const {
    const std::string file = FileOf(pid_, at.args[0]);
    if (IsOurs(file)) Endless(fmt::format("{} {}", verb, file), thread);
  }

  static void Futex(const Standing& at, ThreadWait& thread) {
    const uint64_t operation = at.args[1] & static_cast<uint64_t>(FUTEX_CMD_MASK);
    const bool waits = operation == FUTEX_WAIT || operation == FUTEX_WAIT_BITSET ||
                       operation == FUTEX_LOCK_PI || operation == FUTEX_WAIT_REQUEUE_PI;
    if (!waits) return;
    if (at.args[3] == 0) return Endless("waits for a lock or for another thread", thread);
    Timed("waits for a lock or for another thread, for a time", thread);
  }

  void Poll(const Standing& at, bool endless, ThreadWait& thread) const {
    if (!endless) return Timed("waits for files, for a time", thread);
    constexpr size_t kMost = 256;
    std::array<pollfd, kMost> files{};
    const size_t count = at.args[1];
    if (count > kMost) return;
    const iovec here{files.data(), count * sizeof(pollfd)};
    const iovec there{reinterpret_cast<void*>(at.args[0]), here.iov_len};
    if (count != 0 &&
        process_vm_readv(pid_, &here, 1, &there, 1, 0) != static_cast<ssize_t>(here.iov_len))
      return;
    std::vector<uint64_t> fds;
    for (size_t i = 0; i < count; ++i)
      if (files[i].fd >= 0) fds.push_back(static_cast<uint64_t>(files[i].fd));
    Ready(fds, thread);
  }

  void Epoll(const Standing& at, bool endless, ThreadWait& thread) const {
    if (!endless) return Timed("waits for files, for a time", thread);
    std::istringstream info(ReadText(fmt::format("/proc/{}/fdinfo/{}", pid_, at.args[0])));
    std::vector<uint64_t> fds;
    for (std::string word; info >> word;)
      if (uint64_t fd = 0; word == "tfd:" && info >> fd) fds.push_back(fd);
    Ready(fds, thread);
  }

  void Ready(const std::vector<uint64_t>& fds, ThreadWait& thread) const {
    std::string what;
    for (const uint64_t fd : fds) {
      const std::string file = FileOf(pid_, fd);
      if (!IsOurs(file)) return;
      if (what.find(file) == std::string::npos) what += (what.empty() ? "" : ", ") + file;
    }
    Endless("waits for " + (what.empty() ? "nothing" : what), thread);
  }

  const pid_t pid_;
  const OutsideFiles& outside_;
};

void AddProcess(pid_t pid, const OutsideFiles& outside, ProcessWaits& found) {
  const std::string folder = fmt::format("/proc/{}", pid);
  const std::string status = ReadText(folder + "/status");
  if (status.empty()) return;
  if (Field(status, "State")[0] == 'Z') {
    found.zombies.insert(pid);
    return;
  }
  // An alarm is to come, perhaps, or a timer of POSIX.
  const uint64_t caught = std::strtoull(Field(status, "SigCgt").c_str(), nullptr, 16);
  const bool has_timers =
      (caught >> (SIGALRM - 1) & 1) != 0 || !ReadText(folder + "/timers").empty();
  std::vector<pid_t> children;
  for (const pid_t tid : NumbersIn(folder + "/task")) {
    const std::string own = fmt::format("{}/task/{}", folder, tid);
    const std::string of_thread = ReadText(own + "/status");
    if (of_thread.empty()) continue;
    ThreadWait thread;
    thread.pid = pid;
    thread.tid = tid;
    thread.name = Field("\n" + of_thread, "Name");
    thread.switches =
        std::strtoull(Field(of_thread, "voluntary_ctxt_switches").c_str(), nullptr, 10);
    Standing standing;
    const char state = Field(of_thread, "State")[0];
    if (!has_timers && state == 'S' && ReadCall(pid, tid, standing))
      Waits(pid, outside).Judge(standing, thread);
    found.threads.push_back(std::move(thread));
    for (const pid_t child : ChildrenOf(pid, tid)) children.push_back(child);
  }
  for (const pid_t child : children) AddProcess(child, outside, found);
}

std::set<pid_t> PidsOf(const ProcessWaits& waits) {
  std::set<pid_t> pids;
  for (const ThreadWait& thread : waits.threads) pids.insert(thread.pid);
  return pids;
}

}  // namespace

OutsideFiles OwnOpenFiles() {
  OutsideFiles outside;
  for (const pid_t fd : NumbersIn("/proc/self/fd"))
    outside.files.insert(FileOf(getpid(), static_cast<uint64_t>(fd)));
  return outside;
}

ProcessWaits WaitsBelowThis(const std::set<pid_t>& but, const OutsideFiles& outside) {
  ProcessWaits found;
  for (const pid_t tid : NumbersIn("/proc/self/task"))
    for (const pid_t child : ChildrenOf(getpid(), tid))
      if (but.count(child) == 0) AddProcess(child, outside, found);
  return found;
}

bool UsesDevice(const ProcessWaits& waits) {
  for (const pid_t pid : PidsOf(waits))
    for (const pid_t fd : NumbersIn(fmt::format("/proc/{}/fd", pid)))
      if (const std::string file = FileOf(pid, static_cast<uint64_t>(fd));
          file.rfind("/dev/nvidia", 0) == 0 || file == "/dev/kfd")
        return true;
  return false;
}

std::vector<pid_t> WritersOf(const std::string& pipe, const ProcessWaits& waits) {
  std::vector<pid_t> writers;
  for (const pid_t pid : PidsOf(waits)) {
    for (const pid_t fd : NumbersIn(fmt::format("/proc/{}/fd", pid))) {
      if (FileOf(pid, static_cast<uint64_t>(fd)) != pipe) continue;
      const std::string info = ReadText(fmt::format("/proc/{}/fdinfo/{}", pid, fd));
      const uint64_t flags = std::strtoull(Field(info, "flags").c_str(), nullptr, 8);
      if ((flags & O_ACCMODE) == O_RDONLY) continue;
      writers.push_back(pid);
      break;
    }
  }
  return writers;
}

}  // namespace deja::cli
