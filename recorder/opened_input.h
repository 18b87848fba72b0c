// OpenedInput: what descriptors of one open input file lead to while its process is recorded.
//
// Follows the position of the descriptor (all its copies share it), and hands what is read to
// ReadRuns. Reading again at a given offset what has been recorded takes no lock. Where the process
// has forked since, others may have the same open file: moves that they come between are recorded
// (preload/shared_moves.h). Owner: a pool, to which it goes back when its last descriptor is
// closed. Any thread.
#ifndef DEJA_RECORDER_OPENED_INPUT_H_
#define DEJA_RECORDER_OPENED_INPUT_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "format/messages.h"
#include "preload/hooks/fd_table.h"
#include "recorder/input_files.h"
#include "recorder/read_runs.h"
#include "recorder/spin_lock.h"

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

  // Nobody else has it yet. `file`: null: only its position is followed. `key`: of its path.
  void Begin(KnownFile* file, uint64_t key);

  int64_t AfterRead(int fd, const void* data, size_t size, int64_t offset, size_t more) override;
  void AfterSeek(int64_t position, int64_t offset, int whence) override;
  void AfterMap(void* memory, size_t size, int64_t offset) override;
  void OnUnused(int fd) override;

  void Finish(Recording& rec);
  void FinishInSignal(Recording& rec);
  // The process's recording, for what has none at hand.
  static void SetFinder(Recording* (*find)());

 private:
  friend class OpenedInputs;
  struct Flow;
  [[nodiscard]] bool IsKnown(uint64_t begin, size_t size) const;
  // Others may move it.
  [[nodiscard]] bool IsShared() const;
  int64_t AfterSharedRead(int fd, std::span<const std::byte> data, size_t more);
  void RecordMove(Recording& rec, int64_t position, int64_t after, std::span<const std::byte> data);
  void Record(Recording& rec, uint64_t offset, const void* data, size_t size);
  // False if that failed: nothing is recorded of this file.
  bool RenewInChild();

  std::atomic<KnownFile*> file_{nullptr};
  std::atomic<int64_t> position_{0};  // reads change it under lock_
  std::atomic<uint32_t> moves_{0};    // reads where it stood, and relative seeks
  uint64_t key_ = 0;                  // of the path
  uint32_t forks_ = 0;                // seen when it was opened: later the position is shared
  std::atomic<uint32_t> told_{0};     // generation of the process that has recorded a move
  std::atomic<bool> contended_{false};  // somebody else has moved it
  std::atomic<bool> in_use_{false};
  uint32_t generation_ = 0;
  SpinLock lock_;  // of what follows
  ReadRuns runs_;
  RangeBatch batch_;
  OpenedInput* next_free_ = nullptr;
};

// The pool of the process: shared by a process and what it was forked from.
class OpenedInputs {
 public:
  static OpenedInput* Take();
  static void GiveBack(OpenedInput& input);
  template <typename Function>
  static void ForEach(Function function);
};

}  // namespace deja::recorder

#endif  // DEJA_RECORDER_OPENED_INPUT_H_
