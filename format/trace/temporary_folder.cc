#include "format/trace/temporary_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "common/os/folder_entries.h"
#include "common/os/proc_stat.h"

namespace deja::format {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kTemporaryPrefix = "deja-";
constexpr const char* kTemporaryMark = ".deja-temporary";
constexpr int kEndingSignals[] = {SIGINT, SIGTERM, SIGHUP};

struct OwnFolders {
  std::mutex mutex;
  std::vector<std::string> paths;
};
OwnFolders& TheOwnFolders() {
  static OwnFolders* const own = new OwnFolders;  // a signal's thread outlives main
  return *own;
}

std::atomic<bool> g_ending = false;
int g_signal_pipe[2] = {-1, -1};
pid_t g_watched_process = 0;

// ---- Folders of processes that are gone

bool IsOwnFolder(int folder) {
  struct stat info {};
  struct stat mark {};
  return fstat(folder, &info) == 0 && info.st_uid == geteuid() &&
         fstatat(folder, kTemporaryMark, &mark, AT_SYMLINK_NOFOLLOW) == 0 &&
         S_ISREG(mark.st_mode) && mark.st_uid == geteuid();
}

void RemoveIfAbandoned(const std::string& path) {
  const int folder = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (folder < 0) return;
  std::error_code ignored;
  if (IsOwnFolder(folder) && flock(folder, LOCK_EX | LOCK_NB) == 0) fs::remove_all(path, ignored);
  close(folder);
}

void RemoveAbandoned(const std::string& base) {
  std::vector<std::string> names;
  ForEachEntry(base.c_str(), [&](const char* name, int) {
    if (std::string_view(name).starts_with(kTemporaryPrefix)) names.emplace_back(name);
    return true;
  });
  for (const std::string& name : names) RemoveIfAbandoned(base + "/" + name);
}

std::string StandardBase() {
  const char* chosen = std::getenv("TMPDIR");
  return chosen != nullptr && chosen[0] == '/' ? chosen : "/tmp";
}

// ---- Signals

std::vector<pid_t> LivingChildren() {
  std::vector<pid_t> living;
  std::error_code error;
  for (const auto& task : fs::directory_iterator("/proc/self/task", error)) {
    std::ifstream children(task.path() / "children");
    for (pid_t child = 0; children >> child;) {
      if (ReadProcStat(child).Runs()) living.push_back(child);
    }
  }
  return living;
}

// This process becomes the parent of what they leave behind if it is a subreaper, and sees it the
// next time.
void EndChildren() {
  constexpr int kMostLooks = 100;
  constexpr useconds_t kLookUs = 10000;
  for (int look = 0; look < kMostLooks; ++look) {
    const std::vector<pid_t> living = LivingChildren();
    if (living.empty()) return;
    for (const pid_t child : living) kill(child, SIGKILL);
    usleep(kLookUs);
  }
}

// Other threads may still be making files in them.
void RemoveOwnFolders() {
  constexpr int kMostTries = 100;
  constexpr useconds_t kTryUs = 10000;
  const std::lock_guard<std::mutex> lock(TheOwnFolders().mutex);
  for (const std::string& path : TheOwnFolders().paths) {
    std::error_code error;
    for (int tries = 0; tries < kMostTries; ++tries) {
      fs::remove_all(path, error);
      if (!fs::exists(path, error)) break;
      usleep(kTryUs);
    }
  }
}

[[noreturn]] void EndBy(int signal) {
  struct sigaction standard {};
  standard.sa_handler = SIG_DFL;
  sigaction(signal, &standard, nullptr);
  sigset_t one;
  sigemptyset(&one);
  sigaddset(&one, signal);
  pthread_sigmask(SIG_UNBLOCK, &one, nullptr);
  kill(getpid(), signal);
  for (;;) pause();
}

void RunSignalThread() {
  unsigned char signal = 0;
  while (read(g_signal_pipe[0], &signal, 1) != 1) {
  }
  g_ending = true;
  EndChildren();
  RemoveOwnFolders();
  EndBy(signal);
}

void NoteEndingSignal(int signal) {
  const int saved = errno;
  if (getpid() == g_watched_process) {
    const auto byte = static_cast<unsigned char>(signal);
    [[maybe_unused]] const ssize_t ignored = write(g_signal_pipe[1], &byte, 1);
  } else {  // a child before its exec
    _exit(128 + signal);
  }
  errno = saved;
}

// Once a process, a forked one too: what its parent has is not its own. Holds the mutex.
void WatchSignals() {
  if (g_watched_process == getpid()) return;
  TheOwnFolders().paths.clear();
  if (pipe2(g_signal_pipe, O_CLOEXEC) != 0) return;
  g_watched_process = getpid();
  sigset_t all;
  sigset_t old;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &old);
  std::thread(RunSignalThread).detach();
  pthread_sigmask(SIG_SETMASK, &old, nullptr);
  for (const int signal : kEndingSignals) {
    struct sigaction before {};
    if (sigaction(signal, nullptr, &before) != 0 || before.sa_handler != SIG_DFL) continue;
    struct sigaction handled {};
    handled.sa_handler = NoteEndingSignal;
    handled.sa_flags = SA_RESTART;
    sigaction(signal, &handled, nullptr);
  }
}

// False: another command took it for abandoned before it was locked.
bool LockAndMark(const std::string& path, int folder) {
  if (folder < 0 || flock(folder, LOCK_EX) != 0) return false;
  const int mark = openat(folder, kTemporaryMark, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (mark >= 0) close(mark);
  struct stat named {};
  struct stat locked {};
  return mark >= 0 && stat(path.c_str(), &named) == 0 && fstat(folder, &locked) == 0 &&
         named.st_ino == locked.st_ino && named.st_dev == locked.st_dev;
}

}  // namespace

void RemoveAbandonedFolders() {
  RemoveAbandoned(StandardBase());
}

Result<std::unique_ptr<TempFolder>> TempFolder::Make(const std::string& stem,
                                                     const std::string& in) {
  const std::string hint = in.empty() ? " (set TMPDIR to have it elsewhere)" : "";
  std::string base = in.empty() ? StandardBase() : in;
  while (base.size() > 1 && base.back() == '/') base.pop_back();
  RemoveAbandoned(base);
  std::error_code error;  // the process may change its directory
  std::string path = fs::absolute(base + "/" + stem + "XXXXXX", error).string();
  {
    // A signal that comes in between finds the folder in the list.
    std::unique_lock<std::mutex> lock(TheOwnFolders().mutex);
    WatchSignals();
    if (g_ending) {  // the folders of the list may be gone already
      lock.unlock();
      AwaitEndBySignal();
    }
    if (mkdtemp(path.data()) == nullptr)
      return FailErrno("making a temporary folder " + path + hint, errno);
    TheOwnFolders().paths.push_back(path);
  }
  const int folder = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  std::unique_ptr<TempFolder> made(new TempFolder(path, folder));
  if (!LockAndMark(path, folder)) {
    AwaitEndBySignal();
    return FailErrno("locking the temporary folder " + path + hint, errno);
  }
  return made;
}

TempFolder::~TempFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
  if (lock_ >= 0) close(lock_);
  const std::lock_guard<std::mutex> lock(TheOwnFolders().mutex);
  std::erase(TheOwnFolders().paths, path_);
}

void AwaitEndBySignal() {
  while (g_ending) pause();
}

}  // namespace deja::format
