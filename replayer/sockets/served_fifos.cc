// FIFOs of the replayed program whose other end was outside the rank, and pipes that it was born
// with.
#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstring>
#include <utility>

#include "preload/calls/file_calls.h"
#include "preload/calls/meeting_calls.h"
#include "preload/engine/engine.h"
#include "preload/files/absolute_path.h"
#include "preload/hooks/descriptors/own_pipes.h"
#include "preload/process/threads.h"
#include "preload/symbols/real_sockets.h"
#include "replayer/files/input_files.h"
#include "replayer/meet/pipe_order.h"
#include "replayer/sockets/connections.h"
#include "replayer/sockets/fifo_watch.h"
#include "replayer/sockets/served_socket.h"

namespace deja::replayer {

using preload::ConnectionName;

namespace {

// What the calling thread is opening: position in the plan.
thread_local uint32_t t_opening = kNone;
// Or, where all ends of the FIFO are in processes of the rank, what its pipe is called; 0: not so.
thread_local uint64_t t_live_key = 0;

}  // namespace

// The program's end of a pipe, and the library's. A program that only writes has no reader: such an
// end must go on working in an image that knows nothing of ours.
ServedSocket* ServedConnections::NewPipe(int access, int& fd) {
  fd = -1;
  int inner = -1;
  if (access == O_WRONLY) {
    fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
  } else {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return nullptr;
    inner = MoveUp(ends[1]);
    fcntl(inner, F_SETFL, O_NONBLOCK);
    fd = ends[0];
    if (access == O_RDWR) {
      char link[40];
      snprintf(link, sizeof link, "/proc/self/fd/%d", ends[0]);
      const int both = open(link, O_RDWR | O_CLOEXEC);
      if (both >= 0) {
        close(ends[0]);
        fd = both;
      }
    }
  }
  if (fd < 0) return nullptr;
  auto* made = new ServedSocket(*this, 0, 0, 0, inner);
  made->is_pipe_ = true;
  return made;
}

bool ServedConnections::PutAt(int made_fd, int fd) {
  const int marks = fcntl(fd, F_GETFD);
  const int status = fcntl(fd, F_GETFL);
  const bool ok = dup3(made_fd, fd, marks > 0 && (marks & FD_CLOEXEC) != 0 ? O_CLOEXEC : 0) >= 0;
  close(made_fd);
  if (ok && status >= 0) fcntl(fd, F_SETFL, status & O_NONBLOCK);
  return ok;
}

const char* ServedConnections::BeforeOpen(int dirfd, const char* path, int flags) {
  t_opening = kNone;
  t_live_key = 0;
  if (!fifos_.any() || abandoned() || (flags & O_PATH) != 0) return path;
  char absolute[PATH_MAX];
  size_t size = preload::AbsolutePath(dirfd, path, absolute).size();
  if (preload::Engine* engine = size == 0 ? nullptr : preload::EngineOfThisProcess())
    size = engine->files->UnmapPath(absolute, size);
  const std::string name = InputServer::NameOf(session_, {absolute, size}, path[0] != '/');
  const auto fifo = fifos_.paths().find(name);
  if (fifo == fifos_.paths().end()) return path;
  if (fifo->second.is_live()) {
    t_live_key = KeyOfFifo(name);
    return path;
  }
  const char* thread = preload::Self().name;
  std::lock_guard<std::mutex> lock(mutex_);
  const std::string key = "open " + std::to_string(flags & O_ACCMODE) + " " + thread + " " + name;
  const uint32_t planned =
      script_.Find(ConnectionName::Open(name, flags, ++numbers_[key], thread).text);
  // The recorded run has never come out of an open that it did not make; nor does this one.
  if (planned == kNone) {
    // But where it ended by itself it can hardly have been waiting there.
    const bool ended = session_.plan().end().kind == EndKind::kExit;
    char place[PATH_MAX];
    preload::Engine* engine = preload::EngineOfThisProcess();
    const char* mapped = engine == nullptr
                             ? nullptr
                             : engine->files->MapPath(dirfd, path, preload::FileUse::kLook, place);
    const bool is_main = std::strcmp(thread, "0") == 0;
    if (mapped != nullptr) BeginFifoOpen(name, mapped, flags, ended && is_main);
    return path;
  }
  Moved();
  if (script_.Info(planned).result < 0) {
    errno = script_.Info(planned).error;
    return nullptr;
  }
  t_opening = planned;
  return "/dev/null";
}

preload::FdObject* ServedConnections::AfterOpen(int, const char* path, int fd, int flags) {
  EndFifoOpen();
  const uint32_t planned = std::exchange(t_opening, kNone);
  if (fd < 0 || (flags & O_PATH) != 0) return nullptr;
  if (const int other = preload::DescriptorNamedBy(path); other >= 0) {
    preload::FdObject* object = preload::FdTable::Find(other);
    const bool same = object != nullptr && object->kind() == preload::FdObject::Kind::kConnection;
    return same ? object : nullptr;
  }
  const uint64_t live_key = std::exchange(t_live_key, 0);
  if (planned == kNone)
    return live_key == 0 || pipes_ == nullptr ? nullptr
                                              : preload::OwnPipe::Named(*pipes_, fd, live_key);
  std::lock_guard<std::mutex> lock(mutex_);
  int made_fd = -1;
  ServedSocket* made = NewPipe(flags & O_ACCMODE, made_fd);
  if (made == nullptr || !PutAt(made_fd, fd)) return nullptr;
  made->Lead(planned);
  return made;
}

bool ServedSocket::ShowByte() {
  const char byte = 0;
  return (is_pipe_ ? write(inner_, &byte, 1)
                   : preload::real::Send(inner_, &byte, 1, MSG_DONTWAIT | MSG_NOSIGNAL)) == 1;
}

void ServedSocket::ShowEnd() {
  if (is_pipe_) {
    close(inner_);
    inner_ = -1;
  } else {
    preload::real::Shutdown(inner_, SHUT_WR);
  }
  ended_ = true;
}

void ServedSocket::TakeToken(int fd) {
  if (!token_) return;
  char byte;
  if (!is_pipe_) {
    preload::real::Recv(fd, &byte, 1, MSG_DONTWAIT);
  } else {
    pollfd there{fd, POLLIN, 0};
    [[maybe_unused]] const ssize_t n = poll(&there, 1, 0) == 1 ? read(fd, &byte, 1) : 0;
  }
  token_ = false;
}

// The kernel's own waiting: time limits, signals and cancellation work as they do without us.
bool ServedSocket::WaitForByte(int fd) const {
  if (is_pipe_) {
    pollfd there{fd, POLLIN, 0};
    return poll(&there, 1, -1) >= 0;
  }
  char byte;
  return preload::real::Recv(fd, &byte, 1, MSG_PEEK) >= 0;
}

}  // namespace deja::replayer
