// OpenedInput: what descriptors of one open input file lead to while its process is recorded.
//
// Follows the position of the descriptor (all its copies share it), and hands what is read to
// ReadRuns. Reading again at a given offset what has been recorded takes no lock. Where the process
// has forked since, others may have the same open file: moves that they come between are recorded
// (preload/meet/shared_moves.h). Owner: a pool, to which it goes back when its last descriptor is
// closed. Any thread.
#ifndef DEJA_RECORDER_FILES_OPENED_INPUT_H_
#define DEJA_RECORDER_FILES_OPENED_INPUT_H_

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "common/runtime/spin_lock.h"
#include "format/wire/messages.h"
#include "preload/engine/fd_table.h"
#include "recorder/events/object_pool.h"
#include "recorder/files/input_files.h"
#include "recorder/files/read_runs.h"
#include "recorder/files/shared_position.h"

namespace deja::recorder {

// Puts finished ranges of one file together into FileRead events.
class RangeBatch {
 public:
  // `in_signal`: this is a signal handler.
  void Begin(uint32_t file, format::FileReadHow how = format::FileReadHow::kRead);
  void Add(Recording& rec, const ReadRange& range, bool keep, bool in_signal);
  // A range that could not be recorded.
  void AddLost(Recording& rec, uint64_t begin, uint64_t size);
  void Flush(Recording& rec, bool in_signal);

 private:
  void Append(uint64_t begin, uint64_t size, const Hash128& hash);

  format::FileRead event_;
  char hashes_[format::kMaxFileRanges * 16];
  uint64_t last_end_ = 0;
  uint64_t bytes_ = 0;
};

class OpenedInput final : public preload::FdObject {
 public:
  OpenedInput() : FdObject(Kind::kFile) {}

  // No other thread has the object yet. `file`: null: only its position is followed. `key`, `open`:
  // as of SharedPosition.
  void Begin(KnownFile* file, uint64_t key, uint32_t open);

  int64_t AfterRead(int fd, const void* data, size_t size, int64_t offset, size_t more) override;
  void AfterSeek(int64_t position, int64_t offset, int whence) override;
  void AfterMap(void* memory, size_t size, int64_t offset) override;
  void OnUnused(int fd) override;

  // From the pool of the process, which it shares with what it was forked from; null: there is no
  // room.
  static OpenedInput* Take();
  template <typename Function>
  static void ForEachInUse(Function function);
  void Finish(Recording& rec);
  void FinishInSignal(Recording& rec);
  // The process's recording, for what has none at hand.
  static void SetFinder(Recording* (*find)());
  // Null: there is none.
  static Recording* FindRecording();

 private:
  friend class ObjectPool<OpenedInput>;
  struct Flow;
  [[nodiscard]] bool IsKnown(uint64_t begin, size_t size) const;
  void Record(Recording& rec, uint64_t offset, const void* data, size_t size);
  // False if that failed: nothing is recorded of this file.
  bool RenewInChild();

  std::atomic<KnownFile*> file_{nullptr};
  SharedPosition position_;  // not shared: reads change it under lock_
  std::atomic<bool> in_use_{false};
  uint32_t generation_ = 0;
  SpinLock lock_;  // of what follows
  ReadRuns runs_;
  RangeBatch batch_;
  OpenedInput* next_free_ = nullptr;
};

}  // namespace deja::recorder

#endif  // DEJA_RECORDER_FILES_OPENED_INPUT_H_
