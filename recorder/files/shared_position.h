// SharedPosition: the position in an open file, which processes share once one has forked.
//
// Follows what this process does. A move by another process in between is recorded
// (preload/meet/shared_moves.h). Owner: what the descriptors lead to. Any thread, within the guard;
// no locks. A forked child goes on with what it has inherited.
#ifndef DEJA_RECORDER_FILES_SHARED_POSITION_H_
#define DEJA_RECORDER_FILES_SHARED_POSITION_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

namespace deja::recorder {

class Recording;

class SharedPosition {
 public:
  // For a file that was just opened. `key`: of its path. `open`: how often it had been before.
  void Begin(uint64_t key, uint32_t open);
  // Others may move it.
  [[nodiscard]] bool IsShared() const;

  // Not shared: `size` bytes were read or written at the position. Returns the position before. One
  // thread at a time; several threads must order themselves.
  int64_t Advance(int64_t size) {
    const int64_t at = position_.load(std::memory_order_relaxed);
    position_.store(at + size, std::memory_order_relaxed);
    moves_.store(moves_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    return at;
  }
  // Shared: `data` was read, or written, and `more` bytes after it. Returns where; -1: not known.
  enum class Move : bool { kRead, kWrite };
  int64_t AfterShared(Recording& rec, int fd, std::span<const std::byte> data, size_t more,
                      Move move);
  // lseek(…, offset, whence) has returned `position`. Null: nothing is recorded.
  void AfterSeek(Recording* rec, int64_t position, int64_t offset, int whence);

 private:
  void Record(Recording& rec, int64_t position, int64_t after, std::span<const std::byte> data);
  [[nodiscard]] bool IsTold() const;

  std::atomic<int64_t> position_{0};
  std::atomic<uint32_t> moves_{0};      // reads and writes where it stood, and relative seeks
  std::atomic<uint32_t> told_{0};       // generation of the process that has recorded one
  std::atomic<bool> contended_{false};  // another process has moved it
  uint64_t key_ = 0;
  uint32_t open_ = 0;
  uint32_t forks_ = 0;  // seen when it was opened
};

// Counted in each process that a fork touches.
void CountForkOfInputs();

}  // namespace deja::recorder

#endif  // DEJA_RECORDER_FILES_SHARED_POSITION_H_
