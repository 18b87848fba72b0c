// Reads by descriptor: read, pread, readv. Those of descriptors that are not tracked go straight to
// the real functions.
#include <sys/uio.h>
#include <unistd.h>

#include "preload/guard.h"
#include "preload/hooks/export.h"
#include "preload/hooks/fd_table.h"
#include "preload/real_symbols.h"

namespace deja::preload {
namespace {

constinit RealFn<ssize_t (*)(int, void*, size_t)> real_read{"read"};
constinit RealFn<ssize_t (*)(int, void*, size_t, size_t)> real_read_chk{"__read_chk"};
constinit RealFn<ssize_t (*)(int, void*, size_t, off_t)> real_pread{"pread"};
constinit RealFn<ssize_t (*)(int, void*, size_t, off64_t)> real_pread64{"pread64"};
constinit RealFn<ssize_t (*)(int, const iovec*, int)> real_readv{"readv"};

// What answers a read of `fd`; null: the kernel.
FdObject* Tracked(int fd) {
  FdObject* object = FdTable::Find(fd);
  return object != nullptr && !InsideDeja() ? object : nullptr;
}

// `real(const iovec*, int)` reads into pieces.
template <typename Real>
ssize_t Read(FdObject& object, LibcApi api, int fd, std::span<const iovec> pieces, int64_t offset,
             Real real) {
  Transfer transfer{.api = api, .fd = fd, .pieces = pieces, .offset = offset};
  transfer.context = &real;
  transfer.real = [](Transfer& t, void* context) {
    t.result = (*static_cast<Real*>(context))(t.pieces.data(), static_cast<int>(t.pieces.size()));
  };
  object.OnRead(transfer);
  return transfer.result;
}

template <typename Real>
ssize_t ReadOne(FdObject& object, LibcApi api, int fd, void* buffer, size_t size, int64_t offset,
                Real real) {
  const iovec piece{buffer, size};
  return Read(object, api, fd, {&piece, 1}, offset, [&](const iovec* pieces, int) {
    return real(pieces[0].iov_base, pieces[0].iov_len);
  });
}

}  // namespace
}  // namespace deja::preload

using namespace deja::preload;  // NOLINT: the hooks below are this file's only names

DEJA_EXPORT ssize_t read(int fd, void* buffer, size_t size) {
  FdObject* object = Tracked(fd);
  if (object == nullptr) return real_read(fd, buffer, size);
  return ReadOne(*object, LibcApi::kread, fd, buffer, size, -1,
                 [fd](void* out, size_t room) { return real_read(fd, out, room); });
}

DEJA_EXPORT ssize_t __read_chk(int fd, void* buffer, size_t size, size_t room) {
  FdObject* object = size <= room ? Tracked(fd) : nullptr;
  if (object == nullptr) return real_read_chk(fd, buffer, size, room);
  return ReadOne(*object, LibcApi::kread, fd, buffer, size, -1,
                 [fd](void* out, size_t n) { return real_read(fd, out, n); });
}

DEJA_EXPORT ssize_t pread(int fd, void* buffer, size_t size, off_t offset) {
  FdObject* object = Tracked(fd);
  if (object == nullptr) return real_pread(fd, buffer, size, offset);
  return ReadOne(*object, LibcApi::kpread, fd, buffer, size, offset,
                 [&](void* out, size_t room) { return real_pread(fd, out, room, offset); });
}

DEJA_EXPORT ssize_t pread64(int fd, void* buffer, size_t size, off64_t offset) {
  FdObject* object = Tracked(fd);
  if (object == nullptr) return real_pread64(fd, buffer, size, offset);
  return ReadOne(*object, LibcApi::kpread, fd, buffer, size, offset,
                 [&](void* out, size_t room) { return real_pread64(fd, out, room, offset); });
}

DEJA_EXPORT ssize_t readv(int fd, const iovec* pieces, int count) {
  FdObject* object = pieces != nullptr && count > 0 ? Tracked(fd) : nullptr;
  if (object == nullptr) return real_readv(fd, pieces, count);
  return Read(*object, LibcApi::kreadv, fd, {pieces, static_cast<size_t>(count)}, -1,
              [fd](const iovec* p, int n) { return real_readv(fd, p, n); });
}
