// FdTable: what the program's file descriptors lead to, as far as Deja cares.
//
// Most descriptors are not tracked: looking one up costs a load and a comparison. One that is
// tracked leads to an FdObject, which the hooks of read, write, close … ask instead of the kernel.
// Copies of a descriptor (dup, fcntl) share the object.
//
// Owner: the table counts the descriptors of an object and calls it when the last one is closed.
// The maker of the object owns its memory. That memory must stay readable for good, since another
// thread may be using a descriptor while it is closed. So objects are never freed, or pools hand
// out objects of the same type only. Any thread; lock-free; no allocation. A vfork child, which
// borrows the parent's memory, changes nothing. Descriptors beyond the table are never tracked.
#ifndef DEJA_PRELOAD_ENGINE_FD_TABLE_H_
#define DEJA_PRELOAD_ENGINE_FD_TABLE_H_

#include <sys/socket.h>
#include <sys/types.h>
#include <sys/uio.h>

#include <atomic>
#include <cstdint>
#include <span>

#include "api/libc_table.h"

namespace deja::preload {

// One transfer of bytes by a descriptor. On the caller's stack. Whoever answers it sets `result`
// (and errno if that is negative), by real() or by itself.
struct Transfer {
  api::LibcApi api;  // the function's row; its fortified and 64-bit variants share one
  int fd;
  std::span<const iovec> pieces;
  int64_t offset = -1;  // -1: where the descriptor stands
  int flags = 0;        // MSG_…
  // Where the address of a datagram is or goes, and what a message brings with it; null: not asked
  // for.
  msghdr* message = nullptr;
  ssize_t result = 0;
  void (*real)(Transfer& transfer, void* context) = nullptr;
  void* context = nullptr;
  void Real() { real(*this, context); }
};

class FdObject {
 public:
  // What kind of thing this is, for those who must know (stdio hooks).
  enum class Kind : uint8_t {
    kEntropy,
    kFile,
    kOwnFile,
    kConnection,
    kCounter,
    kEpoll,
    kPipe,
    kProcess
  };
  constexpr explicit FdObject(Kind kind, bool answers = false) : kind_(kind), answers_(answers) {}
  [[nodiscard]] Kind kind() const { return kind_; }

  // The program reads or writes. Called without the guard (guard.h); never while inside Deja.
  virtual void OnRead(Transfer& transfer) { transfer.Real(); }
  virtual void OnWrite(Transfer& transfer) { transfer.Real(); }
  // Kind::kFile: the program has read `size` bytes, which stand at `offset` of the file (-1: where
  // the descriptor stood; the size may be 0 then), and `more` bytes of the same read after them.
  // Returns where they end; -1: not known. Within the guard.
  virtual int64_t AfterRead(int fd, const void* data, size_t size, int64_t offset, size_t more) {
    (void)fd, (void)data, (void)size, (void)offset, (void)more;
    return -1;
  }
  // Kind::kFile and kOwnFile: lseek(…, offset, whence) has returned `position`.
  virtual void AfterSeek(int64_t position, int64_t offset, int whence) {
    (void)position, (void)offset, (void)whence;
  }
  // The same, if it answers: a seek is about to be made; of Kind::kFile also: a read where the
  // descriptor stands. True: it was answered, and AfterSeek and AfterRead are not called.
  [[nodiscard]] bool has_position() const {
    return kind_ == Kind::kFile || kind_ == Kind::kOwnFile;
  }
  [[nodiscard]] bool answers() const { return answers_; }
  virtual bool AnswerRead(Transfer& transfer) { return (void)transfer, false; }
  virtual bool AnswerSeek(int fd, int64_t offset, int whence, int64_t& position) {
    return (void)fd, (void)offset, (void)whence, (void)position, false;
  }
  // Kind::kFile: `size` bytes from `offset` on can be read at `memory`. Within the guard.
  virtual void AfterMap(void* memory, size_t size, int64_t offset) {
    (void)memory, (void)size, (void)offset;
  }
  // No descriptor leads here any more. On the thread that closes the last one, `fd`, which may be
  // in a signal handler. Before the real call, or afterwards where dup2 has put something else
  // there.
  virtual void OnUnused(int fd) { (void)fd; }

 protected:
  // Never deleted through this class.
  ~FdObject() = default;

 private:
  friend class FdTable;
  Kind kind_;
  bool answers_;
  std::atomic<uint32_t> descriptors_{0};
};

class FdTable {
 public:
  static constexpr unsigned kSize = 1 << 16;

  // What `fd` leads to; null if it is not tracked.
  static FdObject* Find(int fd) {
    if (static_cast<unsigned>(fd) >= kSize) return nullptr;
    return slots_[fd].load(std::memory_order_acquire);
  }
  // `fd` leads to `object` from now on. Null: to nothing that Deja tracks; it was closed, or opened
  // for another file.
  static void Set(int fd, FdObject* object);
  // `to` is a copy of `from` (dup2 has closed what `to` was).
  static void Copy(int from, int to);

 private:
  static std::atomic<FdObject*> slots_[kSize];
};

}  // namespace deja::preload

#endif  // DEJA_PRELOAD_ENGINE_FD_TABLE_H_
