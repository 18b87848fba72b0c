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
#include "common/process/proc_stat.h"
#include "common/runtime/errno_keeper.h"

namespace deja::format {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kTemporaryPrefix = "deja-";
constexpr const char* kTemporaryMark = ".deja-temporary";
// The name until the folder is locked and marked: it says what it is, so that no folder stays whose
// process is killed in between.
constexpr std::string_view kMakingPrefix = "deja-making-";
constexpr std::string_view kLetters = "XXXXXX";  // mkdtemp replaces them
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

// ---- Removing

// True if nothing but the mark is left.
bool RemoveContents(const std::string& path) {
  std::error_code ignored;
  bool all = true;
  for (fs::directory_iterator at(path, ignored), end; !ignored && at != end;
       at.increment(ignored)) {
    if (at->path().filename() == kTemporaryMark) continue;
    std::error_code error;
    fs::remove_all(at->path(), error);
    all = all && !error;
  }
  return all;
}

// The mark goes last, under the name that needs none: the process may be killed at any moment.
// Nothing is there afterwards, unless another thread still makes files in it.
void RemoveMarked(const std::string& path) {
  if (!RemoveContents(path)) return;
  const size_t letters = path.size() - kLetters.size();
  const std::string last =
      path.substr(0, path.rfind('/') + 1) + std::string(kMakingPrefix) + path.substr(letters);
  if (path == last || rename(path.c_str(), last.c_str()) == 0) {
    unlink((last + "/" + kTemporaryMark).c_str());
    if (rmdir(last.c_str()) != 0) rename(last.c_str(), path.c_str());
  }
}

// ---- Folders of processes that are gone

bool IsOwn(int folder) {
  struct stat info {};
  return fstat(folder, &info) == 0 && info.st_uid == geteuid();
}

bool IsMarked(int folder) {
  struct stat mark {};
  return fstatat(folder, kTemporaryMark, &mark, AT_SYMLINK_NOFOLLOW) == 0 &&
         S_ISREG(mark.st_mode) && mark.st_uid == geteuid();
}

void RemoveIfAbandoned(const std::string& base, const std::string& name) {
  const std::string path = base + "/" + name;
  const int folder = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (folder < 0) return;
  const bool is_candidate = IsOwn(folder) && (IsMarked(folder) || name.starts_with(kMakingPrefix));
  if (is_candidate && flock(folder, LOCK_EX | LOCK_NB) == 0) {
    // One without a mark is empty, or not Deja's.
    if (IsMarked(folder))
      RemoveMarked(path);
    else
      rmdir(path.c_str());
  }
  close(folder);
}

void RemoveAbandoned(const std::string& base) {
  std::vector<std::string> names;
  ForEachEntry(base.c_str(), [&](const char* name, int) {
    if (std::string_view(name).starts_with(kTemporaryPrefix)) names.emplace_back(name);
    return true;
  });
  for (const std::string& name : names) RemoveIfAbandoned(base, name);
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
      RemoveMarked(path);
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
  const ErrnoKeeper keep;
  if (getpid() == g_watched_process) {
    const auto byte = static_cast<unsigned char>(signal);
    [[maybe_unused]] const ssize_t ignored = write(g_signal_pipe[1], &byte, 1);
  } else {  // a child before its exec
    _exit(128 + signal);
  }
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

// A folder under its final name: locked, marked, in the list of this process's own.
struct MadeFolder {
  std::string path;
  int lock = -1;
};

// False, with errno: ENOENT if another command took it for abandoned before it was locked.
bool LockAndMark(const std::string& making, const std::string& stem, MadeFolder& made) {
  made.lock = open(making.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (made.lock < 0 || flock(made.lock, LOCK_EX) != 0) return false;
  const int mark = openat(made.lock, kTemporaryMark, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (mark < 0) return false;
  close(mark);
  made.path = stem + making.substr(making.size() - kLetters.size());
  return rename(making.c_str(), made.path.c_str()) == 0;
}

// Holds the mutex: a signal that comes in between waits, and finds the folder in the list. `base`
// is absolute.
Result<MadeFolder> MakeFolder(const std::string& base, const std::string& stem,
                              const std::string& hint) {
  constexpr int kMostTries = 100;
  for (int tries = 1;; ++tries) {
    std::string making = base + "/" + std::string(kMakingPrefix) + std::string(kLetters);
    if (mkdtemp(making.data()) == nullptr)
      return FailErrno("making a temporary folder " + making + hint, errno);
    MadeFolder made;
    if (LockAndMark(making, base + "/" + stem, made)) {
      TheOwnFolders().paths.push_back(made.path);
      return made;
    }
    const int error = errno;
    std::error_code ignored;
    if (error != ENOENT) fs::remove_all(making, ignored);
    if (made.lock >= 0) close(made.lock);
    if (error != ENOENT || tries == kMostTries)
      return FailErrno("marking the temporary folder " + making + hint, error);
  }
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
  base = fs::absolute(base, error).string();
  std::unique_lock<std::mutex> lock(TheOwnFolders().mutex);
  WatchSignals();
  if (g_ending) {  // the folders of the list may be gone already
    lock.unlock();
    AwaitEndBySignal();
  }
  DEJA_ASSIGN_OR_RETURN(MadeFolder made, MakeFolder(base, stem, hint));
  return std::unique_ptr<TempFolder>(new TempFolder(std::move(made.path), made.lock));
}

TempFolder::~TempFolder() {
  (void)RemoveContents(path_);  // which may take a while
  const std::lock_guard<std::mutex> lock(TheOwnFolders().mutex);
  RemoveMarked(path_);
  if (lock_ >= 0) close(lock_);
  std::erase(TheOwnFolders().paths, path_);
}

void AwaitEndBySignal() {
  while (g_ending) pause();
}

}  // namespace deja::format
