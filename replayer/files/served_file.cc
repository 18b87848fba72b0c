#include "replayer/files/served_file.h"

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <set>
#include <string>
#include <vector>

#include "common/runtime/spin_lock.h"
#include "preload/process/guard.h"

namespace deja::replayer {

// Objects of one type, taken again when they are no longer needed.
class ServedPool {
 public:
  template <typename T>
  static T* Take(T*& free) {
    WatchForks();
    g_lock.Lock();
    T* object = free;
    if (object != nullptr) free = object->next_free_;
    g_lock.Unlock();
    return object != nullptr ? object : new T();
  }
  // In a signal handler, maybe: then it is not taken again.
  template <typename T>
  static void GiveBack(T*& free, T& object) {
    if (!g_lock.LockBriefly()) return;
    object.next_free_ = free;
    free = &object;
    g_lock.Unlock();
  }
  // Paths are few, and kept for good.
  static const char* Interned(std::string_view path) {
    static auto* paths = new std::set<std::string, std::less<>>();  // never destroyed
    g_lock.Lock();
    auto it = paths->find(path);
    if (it == paths->end()) it = paths->emplace(path).first;
    g_lock.Unlock();
    return it->c_str();
  }

 private:
  // The forking thread holds the lock: the child gets pools that are whole.
  static void WatchForks() {
    static const int watching =
        pthread_atfork([] { g_lock.Lock(); }, [] { g_lock.Unlock(); }, [] { g_lock.Unlock(); });
    (void)watching;
  }

  static inline SpinLock g_lock;
};

namespace {

std::atomic<Session*> g_session{nullptr};
ServedFile* g_free_files = nullptr;
ServedOutput* g_free_outputs = nullptr;

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

ServedFile* ServedFile::Open(std::string_view path, uint64_t key, uint32_t open,
                             bool is_from_trace) {
  ServedFile* file = ServedPool::Take(g_free_files);
  file->path_ = ServedPool::Interned(path);
  file->is_from_trace_ = is_from_trace;
  file->position_.Begin(key, open);
  return file;
}

void ServedFile::OnUnused(int) {
  ServedPool::GiveBack(g_free_files, *this);
}

bool ServedFile::AnswerRead(preload::Transfer& transfer) {
  const preload::Guard guard;
  Session* session = g_session.load();
  int64_t at = 0;
  if (!position_.AnswerRead(session, transfer, at)) return false;
  if (at >= 0 && transfer.result > 0)
    CheckRange(*session, at, static_cast<size_t>(transfer.result));
  return true;
}

bool ServedFile::AnswerSeek(int fd, int64_t offset, int whence, int64_t& position) {
  const preload::Guard guard;
  return position_.AnswerSeek(g_session.load(), fd, offset, whence, position);
}

void ServedFile::AfterSeek(int64_t position, int64_t, int) {
  position_.AfterSeek(position);
}

int64_t ServedFile::AfterRead(int fd, const void*, size_t size, int64_t offset, size_t more) {
  const auto length = static_cast<int64_t>(size);
  if (offset < 0) position_.Advance(length + static_cast<int64_t>(more));
  Session* session = is_from_trace_ ? g_session.load() : nullptr;
  if (session == nullptr || size == 0) return offset < 0 ? -1 : offset + length;
  if (offset < 0) offset = lseek(fd, 0, SEEK_CUR) - length - static_cast<int64_t>(more);
  if (offset < 0) return -1;
  CheckRange(*session, offset, size);
  return offset + length;
}

ServedOutput* ServedOutput::Open(uint64_t key, uint32_t open) {
  ServedOutput* output = ServedPool::Take(g_free_outputs);
  output->position_.Begin(key, open);
  return output;
}

void ServedOutput::OnUnused(int) {
  ServedPool::GiveBack(g_free_outputs, *this);
}

void ServedOutput::OnRead(preload::Transfer& transfer) {
  int64_t at = 0;
  if (transfer.offset < 0) {
    const preload::Guard guard;
    if (position_.AnswerRead(g_session.load(), transfer, at)) return;
  }
  transfer.Real();
  if (transfer.offset < 0 && transfer.result > 0) position_.Advance(transfer.result);
}

void ServedOutput::OnWrite(preload::Transfer& transfer) {
  if (transfer.offset < 0) {
    const preload::Guard guard;
    if (position_.AnswerWrite(g_session.load(), transfer)) return;
  }
  transfer.Real();
  if (transfer.offset < 0 && transfer.result > 0) position_.Advance(transfer.result);
}

bool ServedOutput::AnswerSeek(int fd, int64_t offset, int whence, int64_t& position) {
  const preload::Guard guard;
  return position_.AnswerSeek(g_session.load(), fd, offset, whence, position);
}

void ServedOutput::AfterSeek(int64_t position, int64_t, int) {
  position_.AfterSeek(position);
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
  Divergence divergence = session.divergences().New(DivergenceKind::kFile);
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
  session.divergences().Diverge(thread, std::move(divergence), 0);
}

}  // namespace deja::replayer
