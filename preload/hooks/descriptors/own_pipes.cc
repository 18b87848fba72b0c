#include "preload/hooks/descriptors/own_pipes.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "common/runtime/errno_keeper.h"
#include "common/runtime/spin_lock.h"
#include "preload/calls/meeting_calls.h"
#include "preload/engine/engine.h"
#include "preload/hooks/export.h"
#include "preload/hooks/input.h"
#include "preload/meet/meeting_key.h"
#include "preload/process/process_name.h"
#include "preload/symbols/real_symbols.h"

namespace deja::preload {
namespace {

constinit RealFn<int (*)(int*)> real_pipe{"pipe"};
constinit RealFn<int (*)(int*, int)> real_pipe2{"pipe2"};
constinit RealFn<int (*)(int, int, int, int*)> real_socketpair{"socketpair"};

constexpr size_t kPipes = 1024;
constinit OwnPipe g_pipes[kPipes];
constinit SpinLock g_pipes_lock;
constinit OwnPipe* g_free_pipe = nullptr;
constinit size_t g_used_pipes = 0;

uint64_t InodeOf(int fd) {
  struct stat st;
  const bool is = fstat(fd, &st) == 0 && (S_ISFIFO(st.st_mode) || S_ISSOCK(st.st_mode));
  return is ? st.st_ino : 0;
}

PipeTable* TableOfEngine() {
  Engine* engine = IsBorrowedMemory() ? nullptr : EngineForHook();
  if (engine == nullptr) return nullptr;
  const Guard guard;
  return engine->meetings->Pipes();
}

}  // namespace

bool IsOwnPipe(int fd) {
  if (fd < 3) return false;
  if (const FdObject* object = FdTable::Find(fd); object != nullptr) {
    const FdObject::Kind kind = object->kind();
    return kind == FdObject::Kind::kCounter || kind == FdObject::Kind::kPipe ||
           kind == FdObject::Kind::kProcess;
  }
  const ErrnoKeeper keep;
  const Guard guard;
  const uint64_t inode = InodeOf(fd);
  return inode != 0 && !CameFromOutside(inode);
}

OwnPipe* OwnPipe::Take(PipeSlot* in, PipeSlot* out) {
  OwnPipe* made = nullptr;
  {
    const Hold hold(g_pipes_lock);
    made = g_free_pipe;
    if (made != nullptr)
      g_free_pipe = made->next_free_;
    else if (g_used_pipes < kPipes)
      made = &g_pipes[g_used_pipes++];
  }
  if (made == nullptr) return nullptr;
  made->in_ = in;
  made->out_ = out;
  made->in_inode_ = in == nullptr ? 0 : in->inode.load();
  made->out_inode_ = out == nullptr ? 0 : out->inode.load();
  made->taken.store(0);
  return made;
}

void OwnPipe::OnUnused(int) {
  const Hold hold(g_pipes_lock);
  next_free_ = g_free_pipe;
  g_free_pipe = this;
}

void OwnPipe::OnRead(Transfer& transfer) {
  Engine* engine = EngineForHook();
  if (engine == nullptr) return transfer.Real();
  engine->meetings->OnPipeRead(*this, transfer);
}

void OwnPipe::OnWrite(Transfer& transfer) {
  Engine* engine = EngineForHook();
  if (engine == nullptr) return transfer.Real();
  engine->meetings->OnPipeWrite(*this, transfer);
}

void OwnPipe::Made(const int (&ends)[2], bool is_pair) {
  const ErrnoKeeper keep;
  PipeTable* table = TableOfEngine();
  if (table == nullptr) return;
  const Guard guard;
  const uint64_t key = NewMeetingKey();
  const uint64_t inodes[2] = {InodeOf(ends[0]), InodeOf(ends[1])};
  if (inodes[0] == 0 || inodes[1] == 0) return;
  PipeSlot* first = table->Add(inodes[0], key, is_pair ? inodes[1] : 0);
  PipeSlot* second = is_pair ? table->Add(inodes[1], key + 1, inodes[0]) : first;
  OwnPipe* near = Take(first, second);
  OwnPipe* far = is_pair ? Take(second, first) : near;
  if (near != nullptr) FdTable::Set(ends[0], near);
  if (far != nullptr) FdTable::Set(ends[1], far);
}

void OwnPipe::Adopt(int fd) {
  const ErrnoKeeper keep;
  if (PipeTable* table = TableOfEngine()) {
    const Guard guard;
    Adopt(*table, fd);
  }
}

void OwnPipe::Adopt(PipeTable& table, int fd) {
  if (fd < 0 || FdTable::Find(fd) != nullptr) return;
  const uint64_t inode = InodeOf(fd);
  PipeSlot* in = CameFromOutside(inode) ? nullptr : table.Find(inode);
  if (in == nullptr) return;
  const uint64_t peer = in->peer.load();
  if (OwnPipe* made = Take(in, peer == 0 ? in : table.Find(peer))) FdTable::Set(fd, made);
}

FdObject* OwnPipe::Named(PipeTable& table, int fd, uint64_t key) {
  const uint64_t inode = InodeOf(fd);
  if (inode == 0) return nullptr;
  PipeSlot* slot = table.FindOrAdd(inode, key);
  return Take(slot, slot);
}

}  // namespace deja::preload

using namespace deja::preload;  // NOLINT: the hooks below are this file's only names

DEJA_EXPORT int pipe(int ends[2]) noexcept {
  const int result = real_pipe(ends);
  if (result == 0) OwnPipe::Made({ends[0], ends[1]}, false);
  return result;
}

DEJA_EXPORT int pipe2(int ends[2], int flags) noexcept {
  const int result = real_pipe2(ends, flags);
  if (result == 0) OwnPipe::Made({ends[0], ends[1]}, false);
  return result;
}

DEJA_EXPORT int socketpair(int domain, int type, int protocol, int ends[2]) noexcept {
  const int result = real_socketpair(domain, type, protocol, ends);
  if (result == 0 && domain == AF_UNIX) OwnPipe::Made({ends[0], ends[1]}, true);
  return result;
}
