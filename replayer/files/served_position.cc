#include "replayer/files/served_position.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "api/libc_table.h"
#include "common/runtime/errno_keeper.h"
#include "preload/meet/shared_moves.h"

namespace deja::replayer {
namespace {

std::atomic<uint32_t> g_generation{1};  // counted by children alone

int64_t WantedBy(const preload::Transfer& transfer) {
  int64_t wanted = 0;
  for (const iovec& piece : transfer.pieces) wanted += static_cast<int64_t>(piece.iov_len);
  return wanted;
}

// Where it stood is not known, but what was read.
void ReadRecorded(preload::Transfer& transfer, Session& session, const RecordedInput& move) {
  std::string_view bytes = session.plan().Bytes(move.data);
  bytes.remove_prefix(std::min(bytes.size(), sizeof(preload::SharedMove)));
  std::vector<std::byte> large;
  if (!move.hash.IsZero()) {
    const uint64_t size = session.payloads().SizeOf(move.hash).value_or(0);
    large = session.payloads().Read(move.hash, size).value_or(std::vector<std::byte>());
    bytes = {reinterpret_cast<const char*>(large.data()), large.size()};
  }
  transfer.result = 0;
  for (const iovec& piece : transfer.pieces) {
    const size_t part = std::min(bytes.size(), piece.iov_len);
    if (part != 0) std::memcpy(piece.iov_base, bytes.data(), part);
    bytes.remove_prefix(part);
    transfer.result += static_cast<ssize_t>(part);
  }
}

preload::SharedMove MoveOf(const Session& session, const RecordedInput& recorded) {
  preload::SharedMove move;
  const std::string_view data = session.plan().Bytes(recorded.data);
  if (data.size() >= sizeof move) std::memcpy(&move, data.data(), sizeof move);
  return move;
}

}  // namespace

void ServedPosition::WatchForks() {
  pthread_atfork(nullptr, nullptr, [] { g_generation.fetch_add(1); });
}

void ServedPosition::Begin(uint64_t key, uint32_t open) {
  key_ = key;
  open_ = open;
  position_.store(0);
  moves_.store(0);
  followed_in_.store(0);
}

const RecordedInput* ServedPosition::RecordedMove(Session& session, uint32_t number) const {
  ThreadState& thread = session.Thread();
  if (thread.recorded == kNone) return nullptr;
  const InputKey key{static_cast<uint32_t>(api::LibcApi::klseek), key_};
  const auto& by_key = session.plan().threads()[thread.recorded].by_key;
  const auto moves = by_key.find(key);
  if (moves == by_key.end()) return nullptr;
  uint32_t& next = thread.next_by_key[key];
  if (next >= moves->second.size()) return nullptr;
  const RecordedInput& move = session.plan().inputs()[moves->second[next]];
  const preload::SharedMove shared = MoveOf(session, move);
  if (shared.number != number || shared.open != open_) return nullptr;
  ++next;
  return &move;
}

bool ServedPosition::Take(Session* session, const RecordedInput*& move) {
  const uint32_t number = moves_.fetch_add(1);
  if (session == nullptr || session->options().is_late) return false;
  move = RecordedMove(*session, number);
  if (move != nullptr) followed_in_.store(g_generation.load());
  if (followed_in_.load() != g_generation.load()) return false;
  session->progress().CountActivity();
  return true;
}

template <typename Real>
void ServedPosition::MoveAt(preload::Transfer& transfer, const RecordedInput* move, int64_t& at,
                            Real real) {
  const int64_t wanted = WantedBy(transfer);
  // Another thread of this process that comes meanwhile gets what comes after.
  if (move != nullptr) {
    at = move->result;
    position_.store(at + wanted);
  } else {
    at = position_.fetch_add(wanted);
  }
  transfer.result =
      real(transfer.fd, transfer.pieces.data(), static_cast<int>(transfer.pieces.size()), at);
  const ErrnoKeeper keep;
  const int64_t done = std::max<int64_t>(transfer.result, 0);
  if (done < wanted) position_.fetch_sub(wanted - done);
  if (transfer.result >= 0) lseek(transfer.fd, at + done, SEEK_SET);
}

bool ServedPosition::AnswerRead(Session* session, preload::Transfer& transfer, int64_t& at) {
  const RecordedInput* move = nullptr;
  if (!Take(session, move)) return false;
  if (move == nullptr || move->result >= 0) {
    MoveAt(transfer, move, at, preadv);
    return true;
  }
  at = -1;
  ReadRecorded(transfer, *session, *move);
  const ErrnoKeeper keep;
  position_.store(MoveOf(*session, *move).after);
  lseek(transfer.fd, position_.load(), SEEK_SET);
  return true;
}

bool ServedPosition::AnswerWrite(Session* session, preload::Transfer& transfer) {
  const RecordedInput* move = nullptr;
  if (!Take(session, move)) return false;
  // Not known where it was: what others write after it stays whole at the end.
  if (move != nullptr && move->result < 0) return false;
  {
    // Which would write at the end, whatever position it is given.
    const ErrnoKeeper keep;
    const int flags = fcntl(transfer.fd, F_GETFL);
    if (flags >= 0 && (flags & O_APPEND) != 0) fcntl(transfer.fd, F_SETFL, flags & ~O_APPEND);
  }
  int64_t at = 0;
  MoveAt(transfer, move, at, pwritev);
  return true;
}

bool ServedPosition::AnswerSeek(Session* session, int fd, int64_t offset, int whence,
                                int64_t& position) {
  const RecordedInput* move = nullptr;
  if (whence != SEEK_CUR || !Take(session, move)) return false;
  position = lseek(fd, move != nullptr ? move->result : position_.load() + offset, SEEK_SET);
  if (position >= 0) position_.store(position);
  return true;
}

}  // namespace deja::replayer
