// Pipes and socketpairs of the rank's own, with several writers or readers: a writer waits until
// what it writes is what a reader got next; a reader gets what it got, when as much is there.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <string>

#include "common/runtime/errno_keeper.h"
#include "common/runtime/futex.h"
#include "preload/calls/connections.h"
#include "preload/hooks/descriptors/own_pipes.h"
#include "preload/process/guard.h"
#include "replayer/core/ending.h"
#include "replayer/core/session.h"
#include "replayer/meet/meetings.h"
#include "replayer/meet/pipe_order.h"
#include "replayer/meet/recorded_meetings.h"
#include "replayer/meet/stillness.h"

namespace deja::replayer {
namespace {

using api::LibcApi;
using preload::Guard;
using preload::OwnPipe;
using preload::PipeSlot;
using preload::Transfer;

// Nothing moves for this time: the awaited process does not come.
constexpr uint64_t kAloneNs = 1'000'000'000;

std::string Gathered(const Transfer& transfer) {
  std::string all;
  for (const iovec& piece : transfer.pieces)
    all.append(static_cast<const char*>(piece.iov_base), piece.iov_len);
  return all;
}

void Scatter(std::string_view bytes, const Transfer& transfer) {
  for (const iovec& piece : transfer.pieces) {
    const size_t part = std::min(bytes.size(), piece.iov_len);
    if (part != 0) std::memcpy(piece.iov_base, bytes.data(), part);
    bytes.remove_prefix(part);
  }
}

void EndTransfer(Transfer& transfer, ssize_t result, int error) {
  transfer.result = result;
  if (error != 0) errno = error;
}

// The program's call with `size` bytes at `data`.
ssize_t Part(const Transfer& transfer, char* data, size_t size) {
  const iovec piece{data, size};
  Transfer part = transfer;
  part.pieces = {&piece, 1};
  part.Real();
  return part.result;
}

// 0: nothing is there within a tick; -1: an error, which errno says.
int WaitATick(int fd, short events) {
  pollfd asked{fd, events, 0};
  // Not by the hook, and not within the guard: handlers of signals are the program's.
  const auto n = syscall(SYS_poll, &asked, 1, static_cast<int>(Stillness::kTickNs / 1'000'000));
  return n > 0 && asked.revents == 0 ? 0 : static_cast<int>(n);
}

// ---- Reading

// What is read in the recorded run without being recorded is read by the first reader, before
// others come.
void CountAlone(OwnPipe& pipe, size_t bytes) {
  pipe.taken.fetch_add(bytes);
  if (PipeSlot* slot = pipe.in()) slot->alone.fetch_add(bytes);
}

class PipeReader {
 public:
  PipeReader(Session& session, ThreadState& thread, OwnPipe& pipe, Transfer& transfer)
      : session_(session), thread_(thread), pipe_(pipe), transfer_(transfer), still_(session) {}

  // As many bytes as the recorded read got, and those.
  void ReadAsRecorded(const RecordedPipeRead& read) {
    if (read.size == 0) return ReadEnd();
    std::string live(read.size, '\0');
    size_t done = 0;
    while (done < live.size()) {
      if (!Await()) {
        if (done != 0 && errno == EINTR) continue;
        return EndTransfer(transfer_, -1, errno);
      }
      const ssize_t n = Part(transfer_, live.data() + done, live.size() - done);
      if (n > 0) done += static_cast<size_t>(n);
      if (n == 0) break;  // the end; the recorded run had more
      if (n < 0 && errno != EAGAIN && errno != EINTR) return EndTransfer(transfer_, -1, errno);
    }
    pipe_.taken.fetch_add(done);
    // With several readers, one may find what is for another: it is there, and which reader gets
    // what is known.
    const bool given = done == live.size() && read.several_readers && !read.bytes.empty();
    Scatter(given ? read.bytes : std::string_view(live).substr(0, done), transfer_);
    transfer_.result = static_cast<ssize_t>(done);
  }

  // As many bytes as the recorded read got, at most `size`: it asked for no more, or those were
  // there. Its only writer will write them, however long that takes. The call waits as the program
  // means it to; a signal ends it or does not.
  void ReadAlone(size_t size) {
    std::string live(std::min(size, preload::SizeOf(transfer_.pieces)), '\0');
    size_t done = 0;
    while (done < live.size()) {
      const ssize_t n = Part(transfer_, live.data() + done, live.size() - done);
      if (n == 0) break;  // the end; the recorded run had more
      if (n > 0) {
        done += static_cast<size_t>(n);
      } else if (errno == EAGAIN) {
        pollfd asked{transfer_.fd, POLLIN, 0};
        syscall(SYS_poll, &asked, 1, -1);
      } else if (errno != EINTR || done == 0) {
        return EndTransfer(transfer_, -1, errno);
      }
    }
    CountAlone(pipe_, done);
    Scatter(std::string_view(live).substr(0, done), transfer_);
    transfer_.result = static_cast<ssize_t>(done);
  }

  // The first reader has read what it read alone. False: the call is over, errno says why.
  bool AwaitFirstReader(uint64_t bytes) {
    while (pipe_.in()->alone.load() < bytes && still_.ns() < kAloneNs) {
      const Guard guard;
      constexpr timespec kPause{0, 1'000'000};
      if (syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &kPause, nullptr) != 0) {
        EndTransfer(transfer_, -1, EINTR);
        return false;
      }
      still_.IsTimeToLook();
    }
    return true;
  }

  // At most `most` bytes, which were there.
  void ReadAtMost(size_t most) {
    std::string live(std::min(most, preload::SizeOf(transfer_.pieces)), '\0');
    for (;;) {
      if (!Await()) return EndTransfer(transfer_, -1, errno);
      const ssize_t n = Part(transfer_, live.data(), live.size());
      if (n < 0 && errno == EAGAIN) continue;
      if (n > 0) {
        CountAlone(pipe_, static_cast<size_t>(n));
        Scatter(std::string_view(live).substr(0, static_cast<size_t>(n)), transfer_);
      }
      return EndTransfer(transfer_, n, n < 0 ? errno : 0);
    }
  }

  // The recorded thread did not read once more: what it took would be missing elsewhere.
  void ReadOnceMore() {
    const int flags = fcntl(transfer_.fd, F_GETFL);
    if ((transfer_.flags & MSG_DONTWAIT) != 0 || (flags & O_NONBLOCK) != 0)
      return EndTransfer(transfer_, -1, EAGAIN);
    while (still_.ns() < kAloneNs) {
      const Guard guard;
      const timespec tick = SpanOf(Stillness::kTickNs);
      if (syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &tick, nullptr) != 0)
        return EndTransfer(transfer_, -1, EINTR);
      still_.IsTimeToLook();
    }
    transfer_.Real();
  }

 private:
  // All writers have gone; what is still there is for others.
  void ReadEnd() {
    while (still_.ns() < kAloneNs) {
      pollfd asked{transfer_.fd, POLLRDHUP, 0};
      const auto n = syscall(SYS_poll, &asked, 1, 1);
      if (n > 0) break;
      if (n < 0) return EndTransfer(transfer_, -1, errno);
      const Guard guard;
      still_.IsTimeToLook();
    }
    transfer_.result = 0;
  }

  // Something is there. False: the call is over, errno says why.
  bool Await() {
    for (;;) {
      const int ready = WaitATick(transfer_.fd, POLLIN);
      if (ready != 0) return ready > 0;
      const Guard guard;
      if (!still_.IsTimeToLook()) continue;
      if (still_.IsTimeToTell())
        Say("replay: a thread reads a pipe that had data in the recorded run, and nothing moves");
      if (!still_.IsTimeToGiveUp()) continue;
      DivergeAtMeeting(session_, thread_, "read", "the recorded data of a pipe does not arrive");
      errno = EIO;
      return false;
    }
  }

  Session& session_;
  ThreadState& thread_;
  OwnPipe& pipe_;
  Transfer& transfer_;
  Stillness still_;
};

// ---- Writing

class PipeWriter {
 public:
  PipeWriter(Session& session, PipeSlot& slot, Transfer& transfer, bool is_first)
      : session_(session),
        slot_(slot),
        transfer_(transfer),
        is_first_(is_first),
        message_(Gathered(transfer)),
        still_(session) {}

  void Write() {
    // A handler of a signal that came in the middle of a write there.
    if (slot_.turn.load() == static_cast<uint32_t>(syscall(SYS_gettid))) return transfer_.Real();
    size_t done = 0;
    while (done < message_.size() || message_.empty()) {
      const ssize_t n = WritePart(std::string_view(message_).substr(done));
      if (n < 0 && done == 0) return EndTransfer(transfer_, -1, errno);
      if (n <= 0) break;
      done += static_cast<size_t>(n);
    }
    transfer_.result = static_cast<ssize_t>(done);
  }

 private:
  // When it is its turn.
  ssize_t WritePart(std::string_view left) {
    for (;;) {
      const uint32_t epoch = slot_.epoch.load(std::memory_order_acquire);
      if (TakeTurn()) {
        const size_t size = MayWrite(left);
        const ssize_t n = size != 0 || left.empty() ? Put(left.substr(0, size)) : -1;
        {
          const ErrnoKeeper keep;
          GiveTurn(n > 0);
        }
        if (size != 0 || left.empty()) return n;
      }
      const Guard guard;
      if (!FutexWaitNs(slot_.epoch, epoch, Stillness::kTickNs, FutexScope::kShared)) {
        errno = EINTR;
        return -1;
      }
      if (still_.IsTimeToLook()) Look();
    }
  }

  ssize_t Put(std::string_view part) {
    const ssize_t n = Part(transfer_, const_cast<char*>(part.data()), part.size());
    if (n > 0) slot_.written.fetch_add(static_cast<uint64_t>(n));
    return n;
  }

  // How much of it, by what the readers got.
  size_t MayWrite(std::string_view left) {
    const Guard guard;
    if (slot_.free.load() != 0) return left.size();
    const uint64_t written = slot_.written.load();
    if (order_.readers == 0 || order_.IsOver(written))
      order_ = OrderOfPipe(session_.options().scratch, slot_.key.load());
    if (order_.readers == 0) return 0;
    if (written < order_.begin) return is_first_ ? left.size() : 0;
    return order_.Fits(left, written);
  }

  bool TakeTurn() {
    uint32_t nobody = 0;
    const auto self = static_cast<uint32_t>(syscall(SYS_gettid));
    if (slot_.turn.compare_exchange_strong(nobody, self)) return true;
    // A thread that has gone in the middle of it.
    if (syscall(SYS_tkill, nobody, 0) == 0 || errno != ESRCH) return false;
    return slot_.turn.compare_exchange_strong(nobody, self);
  }

  void GiveTurn(bool has_written) {
    slot_.turn.store(0);
    if (!has_written) return;
    slot_.epoch.fetch_add(1, std::memory_order_release);
    FutexWake(slot_.epoch, INT_MAX, FutexScope::kShared);
  }

  // No process writes what comes before.
  void Look() {
    if (still_.ns() < kAloneNs || slot_.free.exchange(1) != 0) return;
    if (order_.readers == 1 && !order_.IsOver(slot_.written.load()))
      Say("replay: several threads write other data into a pipe than was read there, and nothing "
          "moves; from here on they write in any order");
  }

  Session& session_;
  PipeSlot& slot_;
  Transfer& transfer_;
  const bool is_first_;
  const std::string message_;
  PipeOrder order_;
  Stillness still_;
};

}  // namespace

namespace {

// Several threads have written or read there, and this one's reads are recorded.
bool HasRecordedReads(Session& session, const ThreadState& thread, uint64_t key) {
  const auto made = MeetingsOf(session, thread, LibcApi::kpipe, key);
  return std::any_of(made.begin(), made.end(), [&](uint32_t at) {
    const RecordedInput& read = session.plan().inputs()[at];
    return read.result >= 0 && read.error == 0;
  });
}

}  // namespace

void ServePipeRead(Session& session, ThreadState& thread, OwnPipe& pipe, Transfer& transfer) {
  PipeSlot* slot = pipe.in();
  const bool is_look = (transfer.flags & (MSG_PEEK | MSG_ERRQUEUE)) != 0;
  const bool keeps = slot != nullptr && !is_look && KeepsOrder(session);
  const uint64_t key = slot == nullptr ? 0 : slot->key.load();
  const RecordedInput* next = keeps ? NextMeeting(session, thread, LibcApi::kpipe, key) : nullptr;
  const RecordedPipeRead read(next == nullptr ? std::string_view{}
                                              : session.plan().Bytes(next->data));
  if (next == nullptr || transfer.message != nullptr) {
    PipeReader reader(session, thread, pipe, transfer);
    if (keeps && next == nullptr && HasRecordedReads(session, thread, key))
      return reader.ReadOnceMore();
    transfer.Real();
    if (transfer.result > 0 && !is_look) CountAlone(pipe, static_cast<size_t>(transfer.result));
    if (next != nullptr && next->error == 0 && !read.is_alone)
      ConsumeMeeting(session, thread, LibcApi::kpipe, key);
    return;
  }
  const uint64_t taken = pipe.taken.load();
  PipeReader reader(session, thread, pipe, transfer);
  const bool is_first = next->error != 0 || read.is_first_reader;
  if (!is_first && !reader.AwaitFirstReader(read.position)) return;
  const uint64_t begin = next->error != 0 ? static_cast<uint64_t>(next->result) : read.position;
  if (is_first && begin > taken)
    return read.is_alone ? reader.ReadAlone(begin - taken) : reader.ReadAtMost(begin - taken);
  if (next->error != 0) {
    ConsumeMeeting(session, thread, LibcApi::kpipe, key);
    return EndTransfer(transfer, -1, next->error);
  }
  if (read.is_alone)
    reader.ReadAlone(read.size);
  else
    reader.ReadAsRecorded(read);
  if (transfer.result >= 0) ConsumeMeeting(session, thread, LibcApi::kpipe, key);
}

void ServePipeWrite(Session& session, ThreadState& thread, OwnPipe& pipe, Transfer& transfer) {
  PipeSlot* slot = pipe.out();
  if (slot == nullptr || !KeepsOrder(session) || transfer.message != nullptr)
    return transfer.Real();
  const uint64_t key = slot->key.load();
  const bool is_first = !MadeMeetings(session, thread, LibcApi::ksocketpair, key);
  if (is_first) {
    // With several readers, the order in which they were counted may not be that of the messages.
    bool is_ordered = false;
    {
      const Guard guard;
      const PipeOrder order = OrderOfPipe(session.options().scratch, key);
      is_ordered = order.readers == 1 && !order.several_readers;
    }
    if (!is_ordered) {
      transfer.Real();
      if (transfer.result > 0) slot->written.fetch_add(static_cast<uint64_t>(transfer.result));
      return;
    }
  }
  PipeWriter(session, *slot, transfer, is_first).Write();
  if (transfer.result > 0 && NextMeeting(session, thread, LibcApi::ksocketpair, key) != nullptr)
    ConsumeMeeting(session, thread, LibcApi::ksocketpair, key);
}

}  // namespace deja::replayer
