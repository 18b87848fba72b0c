#include "format/window_board.h"

#include <signal.h>
#include <unistd.h>

#include <cerrno>

namespace deja::format {
namespace {

// Makes `word` at least `value`. True if it was less.
template <typename T>
bool Raise(std::atomic<T>& word, T value) {
  T seen = word.load(std::memory_order_acquire);
  while (seen < value)
    if (word.compare_exchange_weak(seen, value, std::memory_order_acq_rel)) return true;
  return false;
}

bool IsGone(uint32_t pid) {
  const int saved = errno;
  const bool gone = kill(static_cast<pid_t>(pid), 0) != 0 && errno == ESRCH;
  errno = saved;
  return gone;
}

}  // namespace

int WindowBoard::Join() {
  for (uint32_t i = 0; i < kMembers; ++i) {
    uint32_t nobody = 0;
    // Until `first` is set it wants everything.
    if (!members_[i].pid.compare_exchange_strong(nobody, static_cast<uint32_t>(getpid()))) continue;
    members_[i].first.store(segment(), std::memory_order_release);
    return static_cast<int>(i);
  }
  return -1;
}

void WindowBoard::Close(int member) {
  if (member < 0) return;
  uint32_t goes_on = 0;
  members_[member].end.compare_exchange_strong(goes_on, segment() + 1);
}

void WindowBoard::Advance(uint32_t seen) {
  if (segment_.compare_exchange_strong(seen, seen + 1, std::memory_order_acq_rel))
    bytes_.store(0, std::memory_order_relaxed);
}

void WindowBoard::AdvanceForPart(uint64_t part, uint64_t least_bytes) {
  const uint32_t seen = segment();
  const bool enough = part == 1 || bytes_.load(std::memory_order_relaxed) >= least_bytes;
  if (Raise(parts_, part) && enough) Advance(seen);
}

void WindowBoard::SetFirst(int member, uint32_t first) {
  if (member >= 0) members_[member].first.store(first, std::memory_order_release);
}

bool WindowBoard::Wanted(uint32_t segment) {
  for (Member& member : members_) {
    const uint32_t pid = member.pid.load(std::memory_order_acquire);
    if (pid == 0) return false;  // places are taken in order and never given back
    if (segment < member.first.load(std::memory_order_acquire)) continue;
    uint32_t end = member.end.load(std::memory_order_acquire);
    if (end == 0 && IsGone(pid)) {
      member.end.compare_exchange_strong(end, this->segment() + 1);
      end = member.end.load(std::memory_order_acquire);
    }
    if (end == 0 || segment < end) return true;
  }
  return false;
}

bool WindowBoard::TakeHang(uint64_t progress_ns) {
  return Raise(hang_ns_, progress_ns);
}

void WindowBoard::Mark(uint64_t number) {
  if (marks_.load(std::memory_order_acquire) >= number) return;
  const uint32_t last = segment();
  Raise(marked_end_, last + 1);
  // Before the marks: who sees this one done finds the segments kept.
  if (Raise(marks_, number)) Advance(last);
}

}  // namespace deja::format
