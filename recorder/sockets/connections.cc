#include "recorder/sockets/connections.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdlib>

#include "common/os/folder_entries.h"
#include "common/runtime/errno_keeper.h"
#include "preload/files/absolute_path.h"
#include "preload/hooks/descriptors/own_pipes.h"
#include "preload/process/guard.h"
#include "preload/process/process_name.h"
#include "preload/process/threads.h"
#include "preload/symbols/real_sockets.h"
#include "recorder/core/recording.h"
#include "recorder/sockets/own_sockets.h"
#include "recorder/sockets/recorded_connection.h"

namespace deja::recorder {
namespace {

using preload::ConnectionName;

Recording* (*g_find_recording)() = nullptr;

// A failed open leaves nothing but its name to look at.
bool IsFifo(int dirfd, const char* path, int fd) {
  struct stat st;
  return (fd >= 0 ? fstat(fd, &st) : fstatat(dirfd, path, &st, 0)) == 0 && S_ISFIFO(st.st_mode);
}

preload::FdObject* OpenedFifo(int dirfd, const char* path, int fd, int flags) {
  const Within within;
  Recording* rec = (flags & O_PATH) == 0 ? within.recording() : nullptr;
  if (rec == nullptr || !IsFifo(dirfd, path, fd)) return nullptr;
  if (const int other = preload::DescriptorNamedBy(path); other >= 0) {
    preload::FdObject* object = preload::FdTable::Find(other);
    const bool same = object != nullptr && object->kind() == preload::FdObject::Kind::kConnection;
    return same && fd >= 0 ? object : nullptr;
  }
  char buffer[PATH_MAX];
  const std::string_view name = preload::AbsolutePath(dirfd, path, buffer);
  if (name.empty() || name.size() > preload::kMaxFifoPath || name.substr(0, 6) == "/proc/")
    return nullptr;
  RecordedConnection* made = NewConnection();
  if (made == nullptr) return nullptr;
  made->BeFifo(*rec, name, flags, fd >= 0 ? 0 : ENXIO);
  if (fd >= 0) return made;
  made->OnUnused(-1);
  return nullptr;
}

class Layer final : public preload::ConnectionLayer {
 public:
  int OnSocket(int domain, int type, int protocol) override {
    const int fd = preload::real::Socket(domain, type, protocol);
    const bool wanted = domain == AF_INET || domain == AF_INET6 || domain == AF_UNIX;
    if (fd < 0 || !wanted) return fd;
    preload::Guard guard;
    ErrnoKeeper keep;
    if (RecordedConnection* made = NewConnection()) {
      preload::WatchStreams();
      made->BeSocket(domain, type);
      preload::FdTable::Set(fd, made);
    }
    return fd;
  }

  preload::FdObject* AfterOpen(int dirfd, const char* path, int fd, int flags) override {
    return OpenedFifo(dirfd, path, fd, flags);
  }
};

constinit Layer g_layer;

// Files by descriptor are inputs only on standard input; the null device is always empty, but not
// where a replay runs. Sources of entropy are nowhere the same twice.
bool IsWanted(int fd, const struct stat& st) {
  if (S_ISFIFO(st.st_mode) || S_ISSOCK(st.st_mode)) return true;
  const bool is_device = S_ISCHR(st.st_mode) && major(st.st_rdev) == 1;
  if (is_device && (minor(st.st_rdev) == 8 || minor(st.st_rdev) == 9)) return true;
  if (fd != STDIN_FILENO) return false;
  return S_ISREG(st.st_mode) || S_ISCHR(st.st_mode);
}

// Ends of pipes and socketpairs that a process of the rank has made, until there is an engine.
constexpr size_t kMostPipes = 64;
int g_pipes_to_adopt[kMostPipes];
size_t g_pipe_count = 0;

// Not what a command writes to, or is fed by: a shell's pipes have one reader and one writer.
void RememberPipe(int fd) {
  if (fd > STDERR_FILENO && g_pipe_count < kMostPipes) g_pipes_to_adopt[g_pipe_count++] = fd;
}

void Track(int fd) {
  struct stat st;
  if (fstat(fd, &st) != 0 || !IsWanted(fd, st)) return;
  ConnectionName name = ConnectionName::Inherited(fd);
  if ((S_ISFIFO(st.st_mode) || S_ISSOCK(st.st_mode)) && !preload::CameFromOutside(st.st_ino)) {
    // What the program's processes say to each other is said again in a replay. If one of them has
    // opened a FIFO, the process at its other end is not known yet.
    char buffer[PATH_MAX];
    const std::string_view path = preload::PathOfDescriptor(fd, buffer);
    const bool is_socket = S_ISSOCK(st.st_mode);
    if (is_socket ? !OwnSockets::LeadsOutside(fd)
                  : path.empty() || path.size() > preload::kMaxFifoPath)
      return RememberPipe(fd);
    if (!is_socket) name = ConnectionName::InheritedFifo(fd, path);
  }
  // What the process writes there is its output.
  const int flags = fcntl(fd, F_GETFL);
  if (flags < 0 || (fd != STDIN_FILENO && (flags & O_ACCMODE) == O_WRONLY)) return;
  RecordedConnection* made = NewConnection();
  if (made == nullptr) return;
  made->BeDescriptor(format::ConnectionKind::kInherited, st.st_mode & S_IFMT, name,
                     S_ISREG(st.st_mode) ? static_cast<uint64_t>(st.st_size) : 0);
  if (S_ISSOCK(st.st_mode)) made->LearnSocket(fd);
  preload::WatchStreams();
  preload::FdTable::Set(fd, made);
}

}  // namespace

Within::Within() {
  // Before the guard: within it no engine is made.
  recording_ = g_find_recording != nullptr ? g_find_recording() : nullptr;
  ++preload::t_guard_depth;
}

Within::~Within() {
  --preload::t_guard_depth;
}

preload::ConnectionLayer& RecordConnections(Recording* (*find_recording)()) {
  g_find_recording = find_recording;
  return g_layer;
}

void RecordInheritedConnections() {
  ErrnoKeeper keep;
  Track(STDIN_FILENO);
  ForEachEntry("/proc/self/fd", [](const char* name, int folder) {
    const int fd = static_cast<int>(strtol(name, nullptr, 10));
    if (fd > STDERR_FILENO && fd != folder) Track(fd);
    return true;
  });
}

bool HasInheritedPipes() {
  return g_pipe_count != 0;
}

void RecordInheritedPipes(preload::PipeTable* table) {
  for (size_t i = 0; table != nullptr && i < g_pipe_count; ++i)
    preload::OwnPipe::Adopt(*table, g_pipes_to_adopt[i]);
}

}  // namespace deja::recorder
