// Reads by descriptor (read, pread, readv and their variants), and lseek. Those of descriptors that
// are not tracked go straight to the real functions; the engine gets what was read of an input
// file.
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>

#include "preload/hooks/child_signal_places.h"
#include "preload/hooks/descriptors/tracked.h"
#include "preload/hooks/export.h"
#include "preload/process/guard.h"
#include "preload/symbols/real_symbols.h"

namespace deja::preload {
namespace {

constinit RealFn<ssize_t (*)(int, void*, size_t)> real_read{"read"};
constinit RealFn<ssize_t (*)(int, void*, size_t, size_t)> real_read_chk{"__read_chk"};
constinit RealFn<ssize_t (*)(int, void*, size_t, off_t)> real_pread{"pread"};
constinit RealFn<ssize_t (*)(int, void*, size_t, off64_t)> real_pread64{"pread64"};
constinit RealFn<ssize_t (*)(int, void*, size_t, off_t, size_t)> real_pread_chk{"__pread_chk"};
constinit RealFn<ssize_t (*)(int, void*, size_t, off64_t, size_t)> real_pread64_chk{
    "__pread64_chk"};
constinit RealFn<ssize_t (*)(int, const iovec*, int)> real_readv{"readv"};
constinit RealFn<ssize_t (*)(int, const iovec*, int, off_t)> real_preadv{"preadv"};
constinit RealFn<ssize_t (*)(int, const iovec*, int, off64_t)> real_preadv64{"preadv64"};
constinit RealFn<ssize_t (*)(int, const iovec*, int, off_t, int)> real_preadv2{"preadv2"};
constinit RealFn<ssize_t (*)(int, const iovec*, int, off64_t, int)> real_preadv64v2{"preadv64v2"};
constinit RealFn<off_t (*)(int, off_t, int)> real_lseek{"lseek"};
constinit RealFn<off64_t (*)(int, off64_t, int)> real_lseek64{"lseek64"};

bool IsFile(const FdObject& object) {
  return object.kind() == FdObject::Kind::kFile;
}

// Tells that `n` bytes (or an error) were read. Keeps errno.
ssize_t Told(FdObject& file, int fd, const void* data, ssize_t n, int64_t offset) {
  if (n > 0 || (n == 0 && offset < 0)) {
    const Guard guard;
    file.AfterRead(fd, data, static_cast<size_t>(n), offset, 0);
  }
  return n;
}

ssize_t Told(FdObject& file, int fd, std::span<const iovec> pieces, ssize_t n, int64_t offset) {
  if (n == 0 && !pieces.empty()) return Told(file, fd, pieces[0].iov_base, 0, offset);
  auto left = static_cast<size_t>(std::max<ssize_t>(n, 0));
  const Guard guard;
  bool is_first = true;
  for (const iovec& piece : pieces) {
    const size_t part = std::min(left, piece.iov_len);
    if (part == 0) continue;
    left -= part;
    // The descriptor has moved once, for all of them.
    if (!is_first && offset < 0) break;
    offset = file.AfterRead(fd, piece.iov_base, part, offset, left);
    is_first = false;
  }
  return n;
}

// `real(const iovec*, int)` reads into pieces.
template <typename Real>
ssize_t Read(FdObject& object, api::LibcApi api, int fd, std::span<const iovec> pieces,
             int64_t offset, Real real) {
  Transfer transfer{.api = api, .fd = fd, .pieces = pieces, .offset = offset};
  transfer.context = &real;
  transfer.real = [](Transfer& t, void* context) {
    t.result = (*static_cast<Real*>(context))(t.pieces.data(), static_cast<int>(t.pieces.size()));
  };
  object.OnRead(transfer);
  return transfer.result;
}

template <typename Real>
ssize_t ReadOne(FdObject& object, api::LibcApi api, int fd, void* buffer, size_t size,
                int64_t offset, Real real) {
  const iovec piece{buffer, size};
  return Read(object, api, fd, {&piece, 1}, offset, [&](const iovec* pieces, int) {
    return real(pieces[0].iov_base, pieces[0].iov_len);
  });
}

// A file's, where the descriptor stands.
ssize_t ReadFile(FdObject& file, api::LibcApi api, int fd, void* buffer, size_t size) {
  if (file.answers()) {
    const iovec piece{buffer, size};
    Transfer transfer{.api = api, .fd = fd, .pieces = {&piece, 1}};
    if (file.AnswerRead(transfer)) return transfer.result;
  }
  return Told(file, fd, buffer, real_read(fd, buffer, size), -1);
}

ssize_t ReadWhereItStands(int fd, void* buffer, size_t size) {
  FdObject* object = Tracked(fd);
  if (object == nullptr) return real_read(fd, buffer, size);
  if (IsFile(*object)) return ReadFile(*object, api::LibcApi::kread, fd, buffer, size);
  return ReadOne(*object, api::LibcApi::kread, fd, buffer, size, -1,
                 [fd](void* out, size_t room) { return real_read(fd, out, room); });
}

}  // namespace
}  // namespace deja::preload

using namespace deja::preload;  // NOLINT: the hooks below are this file's only names

DEJA_EXPORT ssize_t read(int fd, void* buffer, size_t size) {
  FileCall counted;
  return counted.Make([=] { return ReadWhereItStands(fd, buffer, size); });
}

DEJA_EXPORT ssize_t __read_chk(int fd, void* buffer, size_t size, size_t room) {
  if (size > room) return real_read_chk(fd, buffer, size, room);  // which ends the process
  return read(fd, buffer, size);
}

DEJA_EXPORT ssize_t pread(int fd, void* buffer, size_t size, off_t offset) {
  FdObject* object = Tracked(fd);
  if (object == nullptr) return real_pread(fd, buffer, size, offset);
  if (IsFile(*object))
    return Told(*object, fd, buffer, real_pread(fd, buffer, size, offset), offset);
  return ReadOne(*object, deja::api::LibcApi::kpread, fd, buffer, size, offset,
                 [&](void* out, size_t room) { return real_pread(fd, out, room, offset); });
}

DEJA_EXPORT ssize_t pread64(int fd, void* buffer, size_t size, off64_t offset) {
  FdObject* object = Tracked(fd);
  if (object == nullptr) return real_pread64(fd, buffer, size, offset);
  if (IsFile(*object))
    return Told(*object, fd, buffer, real_pread64(fd, buffer, size, offset), offset);
  return ReadOne(*object, deja::api::LibcApi::kpread, fd, buffer, size, offset,
                 [&](void* out, size_t room) { return real_pread64(fd, out, room, offset); });
}

DEJA_EXPORT ssize_t readv(int fd, const iovec* pieces, int count) {
  FdObject* object = pieces != nullptr && count > 0 ? Tracked(fd) : nullptr;
  if (object == nullptr) return real_readv(fd, pieces, count);
  if (IsFile(*object)) {
    const std::span all(pieces, static_cast<size_t>(count));
    Transfer transfer{.api = deja::api::LibcApi::kreadv, .fd = fd, .pieces = all};
    if (object->answers() && object->AnswerRead(transfer)) return transfer.result;
    return Told(*object, fd, all, real_readv(fd, pieces, count), -1);
  }
  return Read(*object, deja::api::LibcApi::kreadv, fd, {pieces, static_cast<size_t>(count)}, -1,
              [fd](const iovec* p, int n) { return real_readv(fd, p, n); });
}

DEJA_EXPORT ssize_t __pread_chk(int fd, void* buffer, size_t size, off_t offset, size_t room) {
  if (size > room) return real_pread_chk(fd, buffer, size, offset, room);  // which ends the program
  return pread(fd, buffer, size, offset);
}

DEJA_EXPORT ssize_t __pread64_chk(int fd, void* buffer, size_t size, off64_t offset, size_t room) {
  if (size > room) return real_pread64_chk(fd, buffer, size, offset, room);
  return pread64(fd, buffer, size, offset);
}

// ---- Of these only files matter: entropy and connections have no positions.

namespace {

FdObject* TrackedFile(int fd) {
  FdObject* object = Tracked(fd);
  return object != nullptr && IsFile(*object) ? object : nullptr;
}

template <typename Real>
ssize_t ReadPieces(int fd, const iovec* pieces, int count, int64_t offset, Real real) {
  FdObject* file = TrackedFile(fd);
  const ssize_t n = real();
  if (file == nullptr || n <= 0) return n;
  return Told(*file, fd, {pieces, static_cast<size_t>(count)}, n, offset);
}

template <typename Real>
auto Seek(int fd, int64_t offset, int whence, Real real) {
  FdObject* file = Tracked(fd);
  if (file != nullptr && !file->has_position()) file = nullptr;
  int64_t answer = 0;
  if (file != nullptr && file->answers() && file->AnswerSeek(fd, offset, whence, answer))
    return answer;
  const int64_t position = real();
  if (file != nullptr && position >= 0) file->AfterSeek(position, offset, whence);
  return position;
}

}  // namespace

DEJA_EXPORT ssize_t preadv(int fd, const iovec* pieces, int count, off_t offset) {
  return ReadPieces(fd, pieces, count, offset,
                    [&] { return real_preadv(fd, pieces, count, offset); });
}

DEJA_EXPORT ssize_t preadv64(int fd, const iovec* pieces, int count, off64_t offset) {
  return ReadPieces(fd, pieces, count, offset,
                    [&] { return real_preadv64(fd, pieces, count, offset); });
}

DEJA_EXPORT ssize_t preadv2(int fd, const iovec* pieces, int count, off_t offset, int flags) {
  return ReadPieces(fd, pieces, count, offset,
                    [&] { return real_preadv2(fd, pieces, count, offset, flags); });
}

DEJA_EXPORT ssize_t preadv64v2(int fd, const iovec* pieces, int count, off64_t offset, int flags) {
  return ReadPieces(fd, pieces, count, offset,
                    [&] { return real_preadv64v2(fd, pieces, count, offset, flags); });
}

DEJA_EXPORT off_t lseek(int fd, off_t offset, int whence) noexcept {
  return Seek(fd, offset, whence, [&] { return real_lseek(fd, offset, whence); });
}

DEJA_EXPORT off64_t lseek64(int fd, off64_t offset, int whence) noexcept {
  return Seek(fd, offset, whence, [&] { return real_lseek64(fd, offset, whence); });
}
