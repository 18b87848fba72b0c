#include "format/window/window_board.h"

#include <signal.h>
#include <unistd.h>

#include <cerrno>

#include "common/runtime/errno_keeper.h"
#include "format/tail/job_memory.h"
#include "format/tail/tail.h"

namespace deja::format {
namespace {

constexpr uint64_t kBoardMagic = 0x31776f646e6977;  // "window1"

// Makes `word` at least `value`. True if it was less.
template <typename T>
bool Raise(std::atomic<T>& word, T value) {
  T seen = word.load(std::memory_order_acquire);
  while (seen < value)
    if (word.compare_exchange_weak(seen, value, std::memory_order_acq_rel)) return true;
  return false;
}

bool IsGone(uint32_t pid) {
  const ErrnoKeeper keep;
  return kill(static_cast<pid_t>(pid), 0) != 0 && errno == ESRCH;
}

}  // namespace

std::string WindowBoardName(const std::string& job_id) {
  return TailNamePrefix(job_id) + "window" + kTailNameSuffix;
}

WindowBoard* WindowBoard::OfJob(const std::string& directory, const std::string& job_id,
                                bool create) {
  if (directory.empty() || job_id.empty()) return nullptr;
  return static_cast<WindowBoard*>(MapJobMemory(directory + "/" + WindowBoardName(job_id),
                                                sizeof(WindowBoard), kBoardMagic, create));
}

int WindowBoard::Join(uint32_t name) {
  bool alone = true;
  for (uint32_t i = 0; i < kMembers; ++i) {
    Member& member = members_[i];
    uint32_t owner = 0;
    // Until `first` is set it wants everything.
    if (member.pid.compare_exchange_strong(owner, static_cast<uint32_t>(getpid()))) {
      member.first.store(segment(), std::memory_order_release);
      member.name.store(name, std::memory_order_release);
      if (i != 0 && alone) {
        parts_.store(0, std::memory_order_release);
        step_.store(0, std::memory_order_release);
        // What those have kept can go without it.
        Advance(segment());
        member.first.store(segment(), std::memory_order_release);
      }
      return static_cast<int>(i);
    }
    if (member.end.load(std::memory_order_acquire) == 0 && IsGone(owner))
      Close(static_cast<int>(i));
    alone = alone && member.end.load(std::memory_order_acquire) != 0;
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

bool WindowBoard::AdvanceForPart(uint64_t part, uint64_t least_bytes) {
  const uint32_t seen = segment();
  const bool enough = part == 1 || bytes_.load(std::memory_order_relaxed) >= least_bytes;
  const bool advances = Raise(parts_, part) && enough;
  if (advances) Advance(seen);
  return advances;
}

bool WindowBoard::BeginStep(int member, uint64_t step) {
  Raise(step_, step);
  if (member < 0) return false;
  const auto number = static_cast<uint32_t>(member);
  const uint64_t bit = uint64_t{1} << number % kBits;
  const bool first = (begun_[number / kBits].fetch_or(bit, std::memory_order_acq_rel) & bit) == 0;
  return first && !AnyAtItsStart();
}

bool WindowBoard::AnyAtItsStart() const {
  for (uint32_t i = 0; i < kMembers; ++i) {
    if (members_[i].pid.load(std::memory_order_acquire) == 0) return false;
    if (!HasBegun(i) && members_[i].end.load(std::memory_order_acquire) == 0) return true;
  }
  return false;
}

uint64_t WindowBoard::StepOf(int member) const {
  return HasBegun(static_cast<uint32_t>(member)) ? step_.load(std::memory_order_acquire) : 0;
}

uint32_t WindowBoard::NameOf(std::string_view root, std::string_view path) {
  uint32_t hash = 2166136261;  // FNV-1a
  for (const std::string_view text : {root, path})
    for (const char c : text) hash = (hash ^ static_cast<uint8_t>(c)) * 16777619;
  return hash == 0 ? 1 : hash;
}

int WindowBoard::OwnerOf(std::string_view root, std::string_view path) const {
  // The nearest of those that it is below.
  for (size_t end = path.size(); end != 0;) {
    end = path.rfind('/', end - 1);
    end = end == std::string_view::npos ? 0 : end;
    const uint32_t name = NameOf(root, path.substr(0, end));
    for (uint32_t i = 0; i < kMembers && members_[i].pid.load(std::memory_order_acquire) != 0; ++i)
      if (members_[i].name.load(std::memory_order_acquire) == name) return static_cast<int>(i);
  }
  return -1;
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

bool WindowBoard::MayBeWanted(uint32_t segment) const {
  for (const Member& member : members_) {
    if (member.pid.load(std::memory_order_acquire) == 0) return false;
    const uint32_t end = member.end.load(std::memory_order_acquire);
    const bool ended = end != 0 && segment >= end;
    if (segment >= member.first.load(std::memory_order_acquire) && !ended) return true;
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
