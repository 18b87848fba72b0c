// Pipes and socketpairs between processes of the rank. Where several threads write or read, what
// readers got is recorded, and which writers there were beside the first one. Reads that found
// nothing are recorded, too, and the sizes of those that got less than they asked for.
//
// No lock is held across a call: a write is not counted at all. Its place is where a reader found
// its bytes, so a replay lets writers go by what they write.
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "api/libc_table.h"
#include "format/tail/job_memory.h"
#include "preload/calls/connections.h"
#include "preload/hooks/descriptors/own_pipes.h"
#include "preload/meet/any_order.h"
#include "preload/meet/shared_semaphores.h"
#include "preload/process/guard.h"
#include "recorder/meet/meeting_recorder.h"

namespace deja::recorder {
namespace {

using preload::OwnPipe;
using preload::PipeSlot;
using preload::SharedSemaphores;
using preload::Transfer;

// Other writers may tear a write of more than PIPE_BUF, so programs make such writes only under a
// lock.
constexpr size_t kMostBytes = 4096;

// True if the calling thread is the first that does so at this pipe.
bool IsFirst(std::atomic<uint32_t>& who, uint32_t self) {
  uint32_t nobody = 0;
  return who.load(std::memory_order_relaxed) == self || who.compare_exchange_strong(nobody, self);
}

// Position, size, the reader and, if there are not too many, the bytes.
class PipeRead {
 public:
  enum Flags : uint32_t {
    kSeveralReaders = 1,
    kFirstReader = 2,  // the calling thread is
    kAlone = 4,        // and there is no other one, nor a second writer. Without the bytes
  };

  PipeRead(uint64_t position, uint32_t flags, const Transfer& transfer) {
    const auto size = static_cast<uint32_t>(transfer.result);
    std::memcpy(data_, &position, sizeof position);
    std::memcpy(data_ + sizeof position, &size, sizeof size);
    std::memcpy(data_ + sizeof position + sizeof size, &flags, sizeof flags);
    size_ = sizeof position + sizeof size + sizeof flags;
    if ((flags & kAlone) != 0 || size > kMostBytes) return;
    size_t left = size;
    for (const iovec& piece : transfer.pieces) {
      const size_t part = std::min(left, piece.iov_len);
      if (part == 0) continue;
      std::memcpy(data_ + size_, piece.iov_base, part);
      size_ += part;
      left -= part;
    }
  }
  [[nodiscard]] std::string_view view() const { return {data_, size_}; }

 private:
  char data_[sizeof(uint64_t) + 2 * sizeof(uint32_t) + kMostBytes];
  size_t size_ = 0;
};

// How much the only reader gets of the only writer: less than it asked for is what was there. When
// the end came matters to one that does not wait for it.
bool DependsOnTime(const Transfer& transfer) {
  if (transfer.result == 0) return (fcntl(transfer.fd, F_GETFL) & O_NONBLOCK) != 0;
  return transfer.message == nullptr &&
         static_cast<size_t>(transfer.result) < preload::SizeOf(transfer.pieces);
}

}  // namespace

preload::PipeTable* MeetingRecorder::Pipes() {
  preload::PipeTable* table = pipes_.load(std::memory_order_acquire);
  if (table != nullptr || has_no_pipes_.load(std::memory_order_relaxed)) return table;
  if (recorder_.config().job_id[0] == '\0' || recorder_.Active() == nullptr) return nullptr;
  const ErrnoKeeper keep;
  const std::string folder =
      recorder_.config().tail_dir[0] != '\0' ? recorder_.config().tail_dir : "/dev/shm";
  table = preload::PipeTable::Map(folder + "/" + format::JobPipesName(recorder_.config().job_id));
  if (table == nullptr) has_no_pipes_.store(true, std::memory_order_relaxed);
  preload::PipeTable* other = nullptr;
  if (table != nullptr && !pipes_.compare_exchange_strong(other, table)) return other;
  return table;
}

void MeetingRecorder::OnPipeRead(OwnPipe& pipe, Transfer& transfer) {
  transfer.Real();
  const int error = transfer.result < 0 ? errno : 0;
  PipeSlot* slot = pipe.in();
  if (slot == nullptr || (transfer.flags & (MSG_PEEK | MSG_ERRQUEUE)) != 0) return;
  if (error != 0 && error != EAGAIN) return;
  const uint64_t before = error != 0 ? pipe.taken.load(std::memory_order_relaxed)
                                     : pipe.taken.fetch_add(static_cast<uint64_t>(transfer.result));
  if (preload::t_in_any_order) return;
  // The order of writes and reads under a semaphore is that of the semaphore.
  const bool guarded = SharedSemaphores::GuardsThisThread();
  if (transfer.result > 0 && guarded) return;
  const preload::Guard guard;
  const ErrnoKeeper keep;
  const bool first = guarded || IsFirst(slot->reader, pipes_.load()->OwnToken());
  if (!first) slot->several.fetch_or(PipeSlot::kReaders);
  bool alone = transfer.result >= 0 && first && slot->several.load() == 0;
  if (alone) {
    slot->alone.fetch_add(static_cast<uint64_t>(transfer.result));
    alone = slot->several.load() == 0;
    if (alone && !DependsOnTime(transfer)) return;
  }
  Recording* rec = recorder_.Active();
  if (rec == nullptr) return;
  format::Input input;
  input.api = static_cast<uint32_t>(api::LibcApi::kpipe);
  input.key = slot->key.load(std::memory_order_relaxed);
  input.error = static_cast<uint32_t>(error);
  if (error != 0) {
    input.result = static_cast<int64_t>(before);
    rec->writer.Write(input);
  } else {
    const bool is_shared = (slot->several.load() & PipeSlot::kReaders) != 0;
    alone = alone && transfer.result > 0;
    const PipeRead read(first ? before : slot->alone.load(),
                        (is_shared ? PipeRead::kSeveralReaders : 0U) |
                            (first ? PipeRead::kFirstReader : 0U) | (alone ? PipeRead::kAlone : 0U),
                        transfer);
    const bool is_numbered = transfer.result > 0 && !alone;
    input.result = is_numbered ? int64_t{slot->reads.fetch_add(1)} : -1;
    input.data = read.view();
    rec->writer.Write(input);
  }
  rec->RelieveStaging();
}

void MeetingRecorder::OnPipeWrite(OwnPipe& pipe, Transfer& transfer) {
  PipeSlot* slot = pipe.out();
  if (slot == nullptr || SharedSemaphores::GuardsThisThread() || preload::t_in_any_order)
    return transfer.Real();
  {
    const ErrnoKeeper keep;
    const preload::Guard guard;
    if (IsFirst(slot->writer, pipes_.load()->OwnToken())) slot = nullptr;
    // Before the call: a reader of these bytes knows it then.
    else
      slot->several.fetch_or(PipeSlot::kWriters, std::memory_order_release);
  }
  transfer.Real();
  if (slot == nullptr || transfer.result <= 0) return;
  const ErrnoKeeper keep;
  const preload::Guard guard;
  Recording* rec = recorder_.Active();
  if (rec == nullptr) return;
  format::Input input;
  input.api = static_cast<uint32_t>(api::LibcApi::ksocketpair);
  input.key = slot->key.load(std::memory_order_relaxed);
  input.result = transfer.result;
  rec->writer.Write(input);
  rec->RelieveStaging();
}

}  // namespace deja::recorder
