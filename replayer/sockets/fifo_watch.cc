#include "replayer/sockets/fifo_watch.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <climits>
#include <ctime>
#include <memory>

#include "common/runtime/errno_keeper.h"
#include "preload/calls/file_calls.h"
#include "preload/engine/engine.h"
#include "preload/files/absolute_path.h"
#include "preload/process/process_name.h"
#include "preload/symbols/real_sockets.h"
#include "replayer/process/own_thread.h"
#include "replayer/report/report.h"

namespace deja::replayer {

namespace {

constexpr int kTicks = 100;
constexpr timespec kTick{0, 50'000'000};

thread_local std::shared_ptr<std::atomic<bool>> t_back;

// An open that waits, or will wait, for its other end.
struct Waiting {
  std::shared_ptr<std::atomic<bool>> back;
  std::string text;
  std::string place;
  int other_end = 0;  // open's flags
  bool release = false;
};

void Watch(const Waiting& waiting) {
  for (int i = 0; i < kTicks; ++i) {
    if (waiting.back->load()) return;
    nanosleep(&kTick, nullptr);
  }
  if (waiting.back->load()) return;
  Say(waiting.text);
  if (!waiting.release) return;
  const int fd = open(waiting.place.c_str(), waiting.other_end | O_NONBLOCK | O_CLOEXEC);
  if (fd >= 0) close(fd);
}

bool Waits(int flags) {
  return (flags & (O_PATH | O_NONBLOCK)) == 0 && (flags & O_ACCMODE) != O_RDWR;
}

}  // namespace

void BeginFifoOpen(const std::string& name, const std::string& place, int flags, bool release) {
  EndFifoOpen();
  if (!Waits(flags)) return;
  const bool reads = (flags & O_ACCMODE) == O_RDONLY;
  const preload::ProcessName& process = preload::OwnProcessName();
  Waiting waiting;
  waiting.back = t_back = std::make_shared<std::atomic<bool>>(false);
  waiting.place = place;
  waiting.other_end = reads ? O_WRONLY : O_RDONLY;
  waiting.release = release;
  waiting.text =
      (process.path[0] == '\0' ? std::string("the rank") : "child " + std::string(process.path)) +
      " waits for a process that " + (reads ? "writes to" : "reads") + " the FIFO " + name +
      ", which it opens to " + (reads ? "read" : "write") + " and the recorded run did not";
  if (release) waiting.text += ": this part of the recording is lost; it gets an empty one";
  StartOwnThread([waiting = std::move(waiting)] { Watch(waiting); });
}

void EndFifoOpen() {
  if (t_back == nullptr) return;
  t_back->store(true);
  t_back.reset();
}

int UnrecordedConnections::OnSocket(int domain, int type, int protocol) {
  return preload::real::Socket(domain, type, protocol);
}

const char* UnrecordedConnections::BeforeOpen(int dirfd, const char* path, int flags) {
  preload::Engine* engine = preload::EngineOfThisProcess();
  if (engine == nullptr || !Waits(flags)) return path;
  const ErrnoKeeper keep;
  char buffer[PATH_MAX];
  char name[PATH_MAX];
  struct stat info {};
  const char* place = engine->files->MapPath(dirfd, path, preload::FileUse::kLook, buffer);
  if (place != nullptr && fstatat(dirfd, place, &info, 0) == 0 && S_ISFIFO(info.st_mode)) {
    // A FIFO that is the kernel's under its own name may belong to another program.
    const std::string known(preload::AbsolutePath(dirfd, path, name));
    if (place[0] == '/' && known != place) BeginFifoOpen(known, place, flags, true);
  }
  return path;
}

preload::FdObject* UnrecordedConnections::AfterOpen(int, const char*, int, int) {
  EndFifoOpen();
  return nullptr;
}

}  // namespace deja::replayer
