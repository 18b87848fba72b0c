// ServedPosition: the position in an open file in a replay. Processes share it once one has forked,
// and which of them reads or writes first is not known then. So reads and writes happen where they
// happened in the recorded run (preload/meet/shared_moves.h), or else where this process had left
// the file. The kernel's position follows, for programs that inherit the descriptor.
//
// A recording that follows the file has the first move that the process made after a fork. Up to
// there, or if there is none, the kernel's position counts. Owner: what the descriptors lead to.
// Any thread, within the guard; no locks.
#ifndef DEJA_REPLAYER_FILES_SERVED_POSITION_H_
#define DEJA_REPLAYER_FILES_SERVED_POSITION_H_

#include <atomic>
#include <cstdint>

#include "preload/engine/fd_table.h"
#include "replayer/core/session.h"

namespace deja::replayer {

class ServedPosition {
 public:
  // For a file that was just opened. `key`: of its path. `open`: how often it had been before.
  void Begin(uint64_t key, uint32_t open);

  // A read or a write where the file stands. False: the kernel is to do it, and then comes Advance.
  // `at`: where it happened; -1: not known.
  bool AnswerRead(Session* session, preload::Transfer& transfer, int64_t& at);
  bool AnswerWrite(Session* session, preload::Transfer& transfer);
  void Advance(int64_t size) { position_.fetch_add(size); }
  // As FdObject's.
  bool AnswerSeek(Session* session, int fd, int64_t offset, int whence, int64_t& position);
  void AfterSeek(int64_t position) { position_.store(position); }

  // Once: from now on forked children are counted.
  static void WatchForks();

 private:
  // Counts a move. True: it is not the kernel's; `move`: what was recorded of it, or null.
  bool Take(Session* session, const RecordedInput*& move);
  [[nodiscard]] const RecordedInput* RecordedMove(Session& session, uint32_t number) const;
  template <typename Real>
  void MoveAt(preload::Transfer& transfer, const RecordedInput* move, int64_t& at, Real real);

  uint64_t key_ = 0;
  uint32_t open_ = 0;
  std::atomic<int64_t> position_{0};
  std::atomic<uint32_t> moves_{0};
  std::atomic<uint32_t> followed_in_{0};  // generation of the process that has reached such a move
};

}  // namespace deja::replayer

#endif  // DEJA_REPLAYER_FILES_SERVED_POSITION_H_
