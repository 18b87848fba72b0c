// Connections, input files and sources of entropy that are read by stream (stdin, fopen, fdopen).
// The C library fills and empties its buffers by calls of its own, which no symbol of ours comes
// before. But it makes them through the table of its file streams, in which there are entries for
// reading and writing.
//
// So these entries are replaced, once, when the first of them appears, in both tables (of bytes
// and of wide characters). Only if the table looks as expected: its entries must be the functions
// that the C library exports under the names of the entries. Otherwise nothing is touched, and
// what streams read is not seen. docs/decisions/0010 says why, and what else was considered.
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdio>

#include "common/runtime/errno_keeper.h"
#include "preload/calls/connections.h"
#include "preload/hooks/descriptors/tracked.h"
#include "preload/process/guard.h"
#include "preload/symbols/real_symbols.h"

namespace deja::preload {
namespace {

// struct _IO_jump_t: two words of nothing, finish, overflow, underflow, uflow, pbackfail, xsputn,
// xsgetn, seekoff, seekpos, setbuf, sync, doallocate, read, write, seek, close, stat, …
constexpr size_t kReadEntry = 14;
constexpr size_t kWriteEntry = 15;
constexpr size_t kSeekEntry = 16;
constexpr size_t kEntries = 21;
constexpr int kErrorSeen = 0x20;  // _IO_ERR_SEEN, as the header's own macro for ferror has it

using StreamRead = ssize_t (*)(FILE*, void*, ssize_t);
using StreamWrite = ssize_t (*)(FILE*, const void*, ssize_t);
using StreamSeek = off64_t (*)(FILE*, off64_t, int);
std::atomic<StreamRead> g_read{nullptr};
std::atomic<StreamWrite> g_write{nullptr};
std::atomic<StreamSeek> g_seek{nullptr};

// What the stream reads, if it is of this kind.
FdObject* Tracked(FILE* stream, FdObject::Kind kind) {
  FdObject* object = deja::preload::Tracked(stream->_fileno);
  return object != nullptr && object->kind() == kind ? object : nullptr;
}
FdObject* ConnectionOf(FILE* stream) {
  return Tracked(stream, FdObject::Kind::kConnection);
}
// What answers a read in the kernel's place, or makes it.
FdObject* SourceOf(FILE* stream) {
  FdObject* object = deja::preload::Tracked(stream->_fileno);
  return object != nullptr && object->kind() != FdObject::Kind::kFile ? object : nullptr;
}

ssize_t ReadFileStream(FILE* stream, void* buffer, ssize_t size) {
  FdObject* file = Tracked(stream, FdObject::Kind::kFile);
  if (file != nullptr && file->answers() && size >= 0) {
    const iovec piece{buffer, static_cast<size_t>(size)};
    Transfer transfer{.api = api::LibcApi::kread, .fd = stream->_fileno, .pieces = {&piece, 1}};
    if (file->AnswerRead(transfer)) return transfer.result;
  }
  const ssize_t n = g_read.load(std::memory_order_relaxed)(stream, buffer, size);
  if (file != nullptr && n >= 0) {
    const Guard guard;
    file->AfterRead(stream->_fileno, buffer, static_cast<size_t>(n), -1, 0);
  }
  return n;
}

off64_t SeekStream(FILE* stream, off64_t offset, int whence) {
  FdObject* file = deja::preload::Tracked(stream->_fileno);
  if (file != nullptr && !file->has_position()) file = nullptr;
  int64_t answer = 0;
  if (file != nullptr && file->answers() &&
      file->AnswerSeek(stream->_fileno, offset, whence, answer))
    return answer;
  const off64_t position = g_seek.load(std::memory_order_relaxed)(stream, offset, whence);
  if (file != nullptr && position >= 0) file->AfterSeek(position, offset, whence);
  return position;
}

ssize_t ReadStream(FILE* stream, void* buffer, ssize_t size) {
  FdObject* object = SourceOf(stream);
  if (object == nullptr || size < 0) return ReadFileStream(stream, buffer, size);
  const iovec piece{buffer, static_cast<size_t>(size)};
  Transfer transfer{.api = api::LibcApi::kread, .fd = stream->_fileno, .pieces = {&piece, 1}};
  transfer.context = stream;
  transfer.real = [](Transfer& t, void* context) {
    t.result =
        g_read.load(std::memory_order_relaxed)(static_cast<FILE*>(context), t.pieces[0].iov_base,
                                               static_cast<ssize_t>(t.pieces[0].iov_len));
  };
  object->OnRead(transfer);
  return transfer.result;
}

// To a file that the program may write to.
ssize_t WriteOwnFile(FdObject& file, FILE* stream, const void* data, ssize_t size) {
  const iovec piece{const_cast<void*>(data), static_cast<size_t>(size)};
  Transfer transfer{.api = api::LibcApi::kwrite, .fd = stream->_fileno, .pieces = {&piece, 1}};
  transfer.context = stream;
  transfer.real = [](Transfer& t, void* context) {
    t.result =
        g_write.load(std::memory_order_relaxed)(static_cast<FILE*>(context), t.pieces[0].iov_base,
                                                static_cast<ssize_t>(t.pieces[0].iov_len));
  };
  file.OnWrite(transfer);
  return transfer.result;
}

// Like the function that it takes the place of: everything, or an error in the stream's flags.
ssize_t WriteStream(FILE* stream, const void* data, ssize_t size) {
  if (FdObject* file = Tracked(stream, FdObject::Kind::kOwnFile); file != nullptr && size >= 0)
    return WriteOwnFile(*file, stream, data, size);
  FdObject* object = ConnectionOf(stream);
  if (object == nullptr) return g_write.load(std::memory_order_relaxed)(stream, data, size);
  ssize_t done = 0;
  while (done < size) {
    const ssize_t n = write(stream->_fileno, static_cast<const char*>(data) + done,
                            static_cast<size_t>(size - done));
    if (n < 0) {
      stream->_flags |= kErrorSeen;
      break;
    }
    done += n;
  }
  return done;
}

// Tables are in memory that the dynamic linker has made read-only.
bool Replace(void** table, void* read_fn, void* write_fn, void* seek_fn) {
  if (table == nullptr || table[kReadEntry] != read_fn || table[kWriteEntry] != write_fn ||
      table[kSeekEntry] != seek_fn)
    return false;
  const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto first = reinterpret_cast<uintptr_t>(table) & ~(page - 1);
  const auto last = reinterpret_cast<uintptr_t>(table + kEntries);
  void* memory = reinterpret_cast<void*>(first);
  if (mprotect(memory, last - first, PROT_READ | PROT_WRITE) != 0) return false;
  __atomic_store_n(&table[kReadEntry], reinterpret_cast<void*>(&ReadStream), __ATOMIC_RELEASE);
  __atomic_store_n(&table[kWriteEntry], reinterpret_cast<void*>(&WriteStream), __ATOMIC_RELEASE);
  __atomic_store_n(&table[kSeekEntry], reinterpret_cast<void*>(&SeekStream), __ATOMIC_RELEASE);
  mprotect(memory, last - first, PROT_READ);
  return true;
}

}  // namespace

bool WatchStreams() {
  enum State { kNew, kBegun, kWatched, kUnknown };
  static std::atomic<int> state{kNew};
  int before = kNew;
  if (!state.compare_exchange_strong(before, kBegun)) return before != kUnknown;
  const ErrnoKeeper keep;
  void* read_fn = RealNext("_IO_file_read");
  void* write_fn = RealNext("_IO_file_write");
  void* seek_fn = RealNext("_IO_file_seek");
  bool done = read_fn != nullptr && write_fn != nullptr && seek_fn != nullptr;
  if (done) {
    g_read.store(reinterpret_cast<StreamRead>(read_fn));
    g_write.store(reinterpret_cast<StreamWrite>(write_fn));
    g_seek.store(reinterpret_cast<StreamSeek>(seek_fn));
    done = Replace(static_cast<void**>(RealNext("_IO_file_jumps")), read_fn, write_fn, seek_fn);
    Replace(static_cast<void**>(RealNext("_IO_wfile_jumps")), read_fn, write_fn, seek_fn);
  }
  state.store(done ? kWatched : kUnknown);
  return done;
}

}  // namespace deja::preload
