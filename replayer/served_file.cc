#include "replayer/served_file.h"

#include <pthread.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <new>
#include <set>
#include <string>
#include <vector>

#include "common/errno_keeper.h"
#include "preload/api/libc_table.h"
#include "preload/guard.h"
#include "preload/shared_moves.h"
#include "preload/spin_lock.h"

namespace deja::replayer {
namespace {

std::atomic<Session*> g_session{nullptr};
std::atomic<uint32_t> g_forks{0};

preload::SpinLock g_pool_lock;
ServedFile* g_free = nullptr;

// Paths are few, and those who look one up may be many.
const char* Interned(std::string_view path) {
  static auto* paths = new std::set<std::string, std::less<>>();  // never destroyed
  auto it = paths->find(path);
  if (it == paths->end()) it = paths->emplace(path).first;
  return it->c_str();
}

bool WasDropped(const RecordedFile& file, uint64_t at) {
  return std::any_of(file.ranges.begin(), file.ranges.end(), [&](const RecordedRange& range) {
    return range.dropped && range.begin <= at && at - range.begin < range.size;
  });
}

}  // namespace

uint64_t FirstUnread(const RecordedFile& file, uint64_t begin, uint64_t end) {
  for (const RecordedRange& range : file.ranges) {
    if (range.begin > begin || begin >= end) break;
    if (range.kept) begin = std::max(begin, range.begin + range.size);
  }
  return std::min(begin, end);
}

void ServedFile::SetSession(Session* session) {
  g_session.store(session);
}

ServedFile* ServedFile::Open(std::string_view path, bool is_from_trace) {
  const uint64_t key = preload::PathKey(path);
  g_pool_lock.Lock();
  ServedFile* file = g_free;
  if (file != nullptr)
    g_free = file->next_free_;
  else
    file = new (std::nothrow) ServedFile();
  const char* interned = file == nullptr ? nullptr : Interned(path);
  g_pool_lock.Unlock();
  if (file == nullptr) return nullptr;
  file->path_ = interned;
  file->key_ = key;
  file->is_from_trace_ = is_from_trace;
  file->forks_ = g_forks.load();
  file->position_.store(0);
  file->moves_.store(0);
  return file;
}

// In a signal handler, maybe: then it is not used again.
void ServedFile::OnUnused(int) {
  if (!g_pool_lock.LockBriefly()) return;
  next_free_ = g_free;
  g_free = this;
  g_pool_lock.Unlock();
}

void ServedFile::WatchForks() {
  // Who forks holds the pool: the child gets one that is whole.
  pthread_atfork(
      [] {
        CountFork();
        g_pool_lock.Lock();
      },
      [] { g_pool_lock.Unlock(); }, [] { g_pool_lock.Reset(); });
}

void ServedFile::CountFork() {
  g_forks.fetch_add(1);
}

bool ServedFile::IsShared(const Session* session) const {
  return session != nullptr && forks_ != g_forks.load(std::memory_order_relaxed) &&
         session->plan().has_moves && !session->options().is_late;
}

const RecordedInput* ServedFile::RecordedMove(Session& session, uint32_t number) const {
  ThreadState& thread = session.Thread();
  if (thread.recorded == kNone) return nullptr;
  const InputKey key{static_cast<uint32_t>(preload::LibcApi::klseek), key_};
  const auto& by_key = session.plan().threads()[thread.recorded].by_key;
  const auto moves = by_key.find(key);
  if (moves == by_key.end()) return nullptr;
  uint32_t& next = thread.next_by_key[key];
  if (next >= moves->second.size()) return nullptr;
  const RecordedInput& move = session.plan().inputs()[moves->second[next]];
  preload::SharedMove shared;
  const std::string_view data = session.plan().Bytes(move.data);
  if (data.size() < sizeof shared) return nullptr;
  std::memcpy(&shared, data.data(), sizeof shared);
  if (shared.number != number) return nullptr;
  ++next;
  return &move;
}

// Where it stood is not known, but what was read.
void ServedFile::ReadRecorded(preload::Transfer& transfer, Session& session,
                              const RecordedInput& move, int64_t& after) {
  std::string_view bytes = session.plan().Bytes(move.data);
  preload::SharedMove shared;
  std::memcpy(&shared, bytes.data(), sizeof shared);
  bytes.remove_prefix(sizeof shared);
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
  after = shared.after;
}

void ServedFile::ReadAt(preload::Transfer& transfer, int64_t position, bool is_recorded) {
  int64_t wanted = 0;
  for (const iovec& piece : transfer.pieces) wanted += static_cast<int64_t>(piece.iov_len);
  // Another thread of this process that reads meanwhile gets what comes behind.
  if (is_recorded)
    position_.store(position + wanted);
  else
    position = position_.fetch_add(wanted);
  transfer.result =
      preadv(transfer.fd, transfer.pieces.data(), static_cast<int>(transfer.pieces.size()), position);
  const ErrnoKeeper keep;
  const int64_t got = std::max<int64_t>(transfer.result, 0);
  if (got < wanted) position_.fetch_sub(wanted - got);
  if (transfer.result >= 0) lseek(transfer.fd, position + got, SEEK_SET);
}

bool ServedFile::AnswerRead(preload::Transfer& transfer) {
  const preload::Guard guard;
  const uint32_t number = moves_.fetch_add(1);
  Session* session = g_session.load();
  if (!IsShared(session)) return false;
  session->CountActivity();
  const RecordedInput* move = RecordedMove(*session, number);
  if (move != nullptr && move->result < 0) {
    int64_t after = 0;
    ReadRecorded(transfer, *session, *move, after);
    position_.store(after);
    const ErrnoKeeper keep;
    lseek(transfer.fd, after, SEEK_SET);
    return true;
  }
  ReadAt(transfer, move != nullptr ? move->result : 0, move != nullptr);
  const ErrnoKeeper keep;
  if (transfer.result > 0)
    CheckRange(*session, lseek(transfer.fd, 0, SEEK_CUR) - transfer.result,
               static_cast<size_t>(transfer.result));
  return true;
}

bool ServedFile::AnswerSeek(int fd, int64_t offset, int whence, int64_t& position) {
  const preload::Guard guard;
  const uint32_t number = whence == SEEK_CUR ? moves_.fetch_add(1) : 0;
  Session* session = g_session.load();
  if (whence != SEEK_CUR || !IsShared(session)) return false;
  const RecordedInput* move = RecordedMove(*session, number);
  position = lseek(fd, move != nullptr ? move->result : position_.load() + offset, SEEK_SET);
  if (position >= 0) position_.store(position);
  return true;
}

void ServedFile::AfterSeek(int64_t position, int64_t, int) {
  position_.store(position);
}

int64_t ServedFile::AfterRead(int fd, const void*, size_t size, int64_t offset, size_t more) {
  const auto length = static_cast<int64_t>(size);
  if (offset < 0) position_.fetch_add(length + static_cast<int64_t>(more));
  Session* session = g_session.load();
  if (session == nullptr || size == 0) return offset < 0 ? -1 : offset + length;
  if (offset < 0) offset = lseek(fd, 0, SEEK_CUR) - length - static_cast<int64_t>(more);
  if (offset < 0) return -1;
  CheckRange(*session, offset, size);
  return offset + length;
}

void ServedFile::CheckRange(Session& session, int64_t offset, size_t size) const {
  if (!is_from_trace_) return;
  const std::vector<uint32_t>* states = session.plan().FindFile(path_);
  if (states == nullptr) return;
  const auto begin = static_cast<uint64_t>(offset);
  const uint64_t end = begin + size;
  uint64_t first = begin;
  for (uint32_t index : *states)
    first = std::max(first, FirstUnread(session.plan().files()[index], begin, end));
  if (first == end) return;
  const bool dropped = std::any_of(states->begin(), states->end(), [&](uint32_t index) {
    return WasDropped(session.plan().files()[index], first);
  });
  ThreadState& thread = session.Thread();
  Divergence divergence = session.NewDivergence(DivergenceKind::kFile, thread);
  divergence.api = "read";
  divergence.what = "the replay reads bytes " + std::to_string(begin) + " to " +
                    std::to_string(end - 1) + " of the file " + std::string(path_) +
                    "; the recording does not have those from " + std::to_string(first) + " on";
  if (dropped)
    divergence.what += std::string(": ") + kNotInWindow;
  else if (session.plan().end().kind == EndKind::kTorn)
    divergence.what += ": the recorded process was killed, and what it read last is lost";
  else
    divergence.what += ": the recorded run did not read them";
  session.Diverge(thread, std::move(divergence), 0);
}

}  // namespace deja::replayer
