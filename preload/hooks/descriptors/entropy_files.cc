#include "preload/hooks/descriptors/entropy_files.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <cstring>

#include "common/runtime/errno_keeper.h"
#include "preload/calls/connections.h"
#include "preload/files/absolute_path.h"
#include "preload/hooks/descriptors/own_pipes.h"
#include "preload/hooks/input.h"

namespace deja::preload {
namespace {

bool IsRandomDevice(int fd) {
  struct stat st;
  const ErrnoKeeper keep;
  bool is = fstat(fd, &st) == 0 && S_ISCHR(st.st_mode) && major(st.st_rdev) == 1 &&
            (minor(st.st_rdev) == 8 || minor(st.st_rdev) == 9);
  return is;
}

class EntropyFile final : public FdObject {
 public:
  constexpr EntropyFile() : FdObject(Kind::kEntropy) {}

  // Into the first piece that has room: fewer bytes than asked for are allowed.
  void OnRead(Transfer& transfer) override {
    const iovec* piece = nullptr;
    for (const iovec& candidate : transfer.pieces)
      if (piece == nullptr && candidate.iov_len > 0) piece = &candidate;
    // A descriptor that was closed past libc and given out again is something else by now.
    Engine* engine = piece != nullptr && IsRandomDevice(transfer.fd) ? EngineForHook() : nullptr;
    if (engine == nullptr) return transfer.Real();
    transfer.pieces = {piece, 1};
    transfer.result = TakeInput(
        *engine, transfer.api, 0, BytesOf(piece->iov_base, piece->iov_len), [&](InputCall& call) {
          iovec out{call.out.data(), call.out.size()};
          Transfer inner = transfer;
          inner.pieces = {&out, 1};
          inner.Real();
          call.result = inner.result;
          call.produced = inner.result > 0 ? static_cast<size_t>(inner.result) : 0;
        });
  }
};

constinit EntropyFile g_entropy_file;

}  // namespace

FdObject* EntropyFileOf(const char* path, int fd) {
  const bool may_be =
      path != nullptr && (std::strstr(path, "random") != nullptr || DescriptorNamedBy(path) >= 0);
  return may_be && IsRandomDevice(fd) ? &g_entropy_file : nullptr;
}

void NoteReceivedDescriptors(const msghdr& message) {
  if (message.msg_controllen == 0 || message.msg_control == nullptr || IsBorrowedMemory()) return;
  // The kernel's own words: CMSG_NXTHDR does not change what it walks through.
  auto* walked = const_cast<msghdr*>(&message);
  for (cmsghdr* part = CMSG_FIRSTHDR(walked); part != nullptr; part = CMSG_NXTHDR(walked, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
    const size_t bytes = part->cmsg_len - CMSG_LEN(0);
    for (size_t at = 0; at + sizeof(int) <= bytes; at += sizeof(int)) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(part) + at, sizeof fd);
      if (!IsRandomDevice(fd)) {
        OwnPipe::Adopt(fd);
        continue;
      }
      WatchStreams();
      FdTable::Set(fd, &g_entropy_file);
    }
  }
}

}  // namespace deja::preload
