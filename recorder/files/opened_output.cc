#include "recorder/files/opened_output.h"

#include <algorithm>

#include "common/runtime/errno_keeper.h"
#include "preload/process/guard.h"
#include "recorder/core/recording.h"
#include "recorder/files/opened_input.h"

namespace deja::recorder {
namespace {

constinit ObjectPool<OpenedOutput> g_outputs;

}  // namespace

OpenedOutput* OpenedOutput::Open(OwnFile& file, uint64_t key, uint32_t open) {
  OpenedOutput* output = g_outputs.Take();
  if (output == nullptr) return nullptr;
  output->file_ = &file;
  output->position_.Begin(key, open);
  return output;
}

void OpenedOutput::OnRead(preload::Transfer& transfer) {
  transfer.Real();
  AfterMove(transfer, SharedPosition::Move::kRead);
}

void OpenedOutput::OnWrite(preload::Transfer& transfer) {
  transfer.Real();
  AfterMove(transfer, SharedPosition::Move::kWrite);
}

void OpenedOutput::AfterMove(const preload::Transfer& transfer, SharedPosition::Move move) {
  if (transfer.offset >= 0 || transfer.result < 0 || transfer.pieces.empty()) return;
  const auto size = static_cast<size_t>(transfer.result);
  if (!position_.IsShared()) {
    position_.Advance(transfer.result);
    return;
  }
  const preload::Guard guard;
  const ErrnoKeeper keep;
  Recording* rec = OpenedInput::FindRecording();
  if (rec == nullptr) return;
  const iovec& first = transfer.pieces[0];
  const size_t part = std::min(first.iov_len, size);
  position_.AfterShared(*rec, transfer.fd, {static_cast<const std::byte*>(first.iov_base), part},
                        size - part, move);
  rec->RelieveStaging();
}

void OpenedOutput::AfterSeek(int64_t position, int64_t offset, int whence) {
  const preload::Guard guard;
  const ErrnoKeeper keep;
  position_.AfterSeek(position_.IsShared() ? OpenedInput::FindRecording() : nullptr, position,
                      offset, whence);
}

void OpenedOutput::OnUnused(int fd) {
  file_->OnClosed(fd);
  g_outputs.GiveBack(*this);
}

}  // namespace deja::recorder
