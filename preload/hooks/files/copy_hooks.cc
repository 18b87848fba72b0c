// Copies from one descriptor to another that never pass through the program's memory: sendfile,
// splice, tee, vmsplice, copy_file_range.
//
// The kernel copies what comes from an input file, and it is read once more for the engine. What
// comes from, or goes to, a connection or a source of entropy is read and written instead, up to 16
// KiB at a time. The bytes have to be seen, and in a replay only the engine has them.
#include <fcntl.h>
#include <poll.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>

#include "common/runtime/errno_keeper.h"
#include "preload/calls/connections.h"
#include "preload/calls/socket_calls.h"
#include "preload/hooks/descriptors/tracked.h"
#include "preload/hooks/export.h"
#include "preload/hooks/input.h"
#include "preload/symbols/real_symbols.h"

namespace deja::preload {
namespace {

constinit RealFn<ssize_t (*)(int, int, off_t*, size_t)> real_sendfile{"sendfile"};
constinit RealFn<ssize_t (*)(int, int, off64_t*, size_t)> real_sendfile64{"sendfile64"};
constinit RealFn<ssize_t (*)(int, off64_t*, int, off64_t*, size_t, unsigned)> real_splice{"splice"};
constinit RealFn<ssize_t (*)(int, int, size_t, unsigned)> real_tee{"tee"};
constinit RealFn<ssize_t (*)(int, const iovec*, size_t, unsigned)> real_vmsplice{"vmsplice"};
constinit RealFn<ssize_t (*)(int, off64_t*, int, off64_t*, size_t, unsigned)> real_copy_file_range{
    "copy_file_range"};

constexpr size_t kPiece = 16 << 10;

bool Is(const FdObject* object, FdObject::Kind kind) {
  return object != nullptr && object->kind() == kind;
}

bool IsReady(int fd, short events) {
  pollfd asked{fd, events, 0};
  return poll(&asked, 1, 0) > 0;
}

bool AreFilesOfTwoDevices(int in, int out) {
  const ErrnoKeeper keep;
  struct stat from {};
  struct stat to {};
  return fstat(in, &from) == 0 && fstat(out, &to) == 0 && S_ISREG(from.st_mode) &&
         S_ISREG(to.st_mode) && from.st_dev != to.st_dev;
}

struct Copy {
  int in;
  off64_t* in_at;  // null: where the descriptor stands
  int out;
  off64_t* out_at;
  size_t size;
  bool may_block = true;
};

ssize_t Put(const Copy& c, const char* data, size_t size) {
  return c.out_at != nullptr ? pwrite64(c.out, data, size, *c.out_at) : write(c.out, data, size);
}

// All that came in and cannot be put back goes out, or there is an error.
ssize_t PutAll(const Copy& c, const char* data, size_t size) {
  size_t done = 0;
  while (done < size) {
    const ssize_t n = Put(c, data + done, size - done);
    if (n >= 0) {
      done += static_cast<size_t>(n);
      if (c.out_at != nullptr) *c.out_at += n;
    } else if (errno == EAGAIN) {
      pollfd asked{c.out, POLLOUT, 0};
      poll(&asked, 1, -1);
    } else if (errno != EINTR) {
      return -1;
    }
  }
  return static_cast<ssize_t>(size);
}

// By reading and writing. Less than all of it may be copied at a time.
ssize_t CopyByHand(const Copy& c) {
  char buffer[kPiece];
  size_t wanted = std::min(c.size, sizeof buffer);
  const int saved_errno = errno;
  const bool seekable = c.in_at != nullptr || lseek64(c.in, 0, SEEK_CUR) >= 0;
  errno = saved_errno;
  const int flags = fcntl(c.out, F_GETFL);
  const bool refuses = !c.may_block || (flags >= 0 && (flags & O_NONBLOCK) != 0);
  const bool idle = !c.may_block && !IsReady(c.in, POLLIN);
  if (idle || (refuses && !IsReady(c.out, POLLOUT))) {
    errno = EAGAIN;
    return -1;
  }
  if (refuses && !seekable) wanted = std::min<size_t>(wanted, 4096);  // there is room for a page
  const ssize_t got =
      c.in_at != nullptr ? pread64(c.in, buffer, wanted, *c.in_at) : read(c.in, buffer, wanted);
  if (got <= 0) return got;
  if (!seekable) return PutAll(c, buffer, static_cast<size_t>(got));
  const ssize_t sent = Put(c, buffer, static_cast<size_t>(got));
  const ErrnoKeeper keep;
  if (sent > 0 && c.out_at != nullptr) *c.out_at += sent;
  if (c.in_at != nullptr) {
    if (sent > 0) *c.in_at += sent;
  } else if (sent < got) {
    lseek64(c.in, (sent < 0 ? 0 : sent) - got, SEEK_CUR);
  }
  return sent;
}

// The kernel has copied `size` bytes of an input file from `begin` on.
void Tell(FdObject& file, int fd, off64_t begin, ssize_t size, bool moved) {
  const ErrnoKeeper keep;
  const Guard guard;
  char buffer[kPiece];
  for (ssize_t done = 0; done < size;) {
    const auto wanted = std::min<size_t>(sizeof buffer, static_cast<size_t>(size - done));
    const ssize_t n = pread64(fd, buffer, wanted, begin + done);
    if (n <= 0) break;
    file.AfterRead(fd, buffer, static_cast<size_t>(n), begin + done, 0);
    done += n;
  }
  if (moved) file.AfterSeek(begin + size, begin + size, SEEK_SET);
}

// `real()` lets the kernel do it.
template <typename Real>
ssize_t CopyOf(const Copy& c, Real real) {
  FdObject* source = Tracked(c.in);
  if (Is(source, FdObject::Kind::kConnection) || Is(source, FdObject::Kind::kEntropy) ||
      Is(Tracked(c.out), FdObject::Kind::kConnection))
    return CopyByHand(c);
  if (!Is(source, FdObject::Kind::kFile)) return real();
  const off64_t given = c.in_at != nullptr ? *c.in_at : 0;
  const ssize_t n = real();
  if (n <= 0) return n;
  const off64_t begin = c.in_at != nullptr ? given : lseek64(c.in, 0, SEEK_CUR) - n;
  Tell(*source, c.in, begin, n, c.in_at == nullptr);
  return n;
}

// A replay's files may be on another file system than the recorded run's were.
bool IsOnlyOfReplay(int error) {
  const bool may_be = error == EXDEV || error == EINVAL || error == EOPNOTSUPP;
  Engine* engine = may_be ? EngineForHook() : nullptr;
  ConnectionLayer* layer = engine != nullptr ? engine->sockets->Connections() : nullptr;
  return layer != nullptr && layer->IsReplay();
}

}  // namespace
}  // namespace deja::preload

using namespace deja::preload;  // NOLINT: the hooks below are this file's only names

DEJA_EXPORT ssize_t sendfile(int out, int in, off_t* offset, size_t count) noexcept {
  static_assert(sizeof(off_t) == sizeof(off64_t));
  return CopyOf({in, offset, out, nullptr, count},
                [&] { return real_sendfile(out, in, offset, count); });
}

DEJA_EXPORT ssize_t sendfile64(int out, int in, off64_t* offset, size_t count) noexcept {
  return CopyOf({in, offset, out, nullptr, count},
                [&] { return real_sendfile64(out, in, offset, count); });
}

DEJA_EXPORT ssize_t splice(int in, off64_t* in_at, int out, off64_t* out_at, size_t size,
                           unsigned flags) {
  return CopyOf({in, in_at, out, out_at, size, (flags & SPLICE_F_NONBLOCK) == 0},
                [&] { return real_splice(in, in_at, out, out_at, size, flags); });
}

DEJA_EXPORT ssize_t copy_file_range(int in, off64_t* in_at, int out, off64_t* out_at, size_t size,
                                    unsigned flags) {
  const Copy copy{in, in_at, out, out_at, size};
  const ssize_t n =
      CopyOf(copy, [&] { return real_copy_file_range(in, in_at, out, out_at, size, flags); });
  if (n >= 0 || flags != 0 || !IsOnlyOfReplay(errno)) return n;
  return AreFilesOfTwoDevices(in, out) ? CopyByHand(copy) : n;
}

// What is copied stays where it is. The engine learns that it was looked at, and in a replay it
// says what there is to be seen.
DEJA_EXPORT ssize_t tee(int in, int out, size_t size, unsigned flags) {
  FdObject* source = Tracked(in);
  if (!Is(source, FdObject::Kind::kConnection)) return real_tee(in, out, size, flags);
  char buffer[kPiece];
  const iovec piece{buffer, std::min(size, sizeof buffer)};
  struct Real {
    int out;
    unsigned flags;
    bool done = false;
  } real{out, flags};
  Transfer transfer{.api = deja::api::LibcApi::ktee, .fd = in, .pieces = {&piece, 1}};
  transfer.flags = MSG_PEEK | ((flags & SPLICE_F_NONBLOCK) != 0 ? MSG_DONTWAIT : 0);
  transfer.context = &real;
  transfer.real = [](Transfer& t, void* context) {
    auto& r = *static_cast<Real*>(context);
    r.done = true;
    t.result = real_tee(t.fd, r.out, t.pieces[0].iov_len, r.flags);
  };
  source->OnRead(transfer);
  if (real.done || transfer.result <= 0) return transfer.result;
  return PutAll({in, nullptr, out, nullptr, 0}, buffer, static_cast<size_t>(transfer.result));
}

DEJA_EXPORT ssize_t vmsplice(int fd, const iovec* pieces, size_t count, unsigned flags) {
  const bool tracked = pieces != nullptr && Is(Tracked(fd), FdObject::Kind::kConnection);
  if (!tracked) return real_vmsplice(fd, pieces, count, flags);
  const bool reads = (fcntl(fd, F_GETFL) & O_ACCMODE) == O_RDONLY;
  if ((flags & SPLICE_F_NONBLOCK) != 0 && !IsReady(fd, reads ? POLLIN : POLLOUT)) {
    errno = EAGAIN;
    return -1;
  }
  const int n = static_cast<int>(std::min<size_t>(count, IOV_MAX));
  return reads ? readv(fd, pieces, n) : writev(fd, pieces, n);
}
