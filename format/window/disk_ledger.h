// DiskLedger: how much of the disk the recorded processes of one job on one machine take. It keeps
// all of them together within one budget.
//
// Ranks have equal parts of what earlier attempts of theirs and child processes have left. Without
// child processes, earlier attempts count as half of that at most. Processes that outlive them drop
// what they have beyond it (WindowSweep), and later ones need not wait for that. Child processes
// share one pool, of half the budget at most. The first must not take it all. Each may have as much
// as is still free, and gives back when there are more of them. What a process leaves behind stays
// on the disk and so stays counted. The process that completes its folder adds what its tail still
// holds (recovery.h), if there is room.
//
// A small mapping beside the tails, with a name that is removed with theirs; not inherited by
// children. Numbers in it are good for a moment only. A reader may be late by what the others write
// within one pass of their background threads.
//
// Owner: PayloadWindow, which never unmaps it, or recovery. Functions: one thread at a time, of
// many processes.
#ifndef DEJA_FORMAT_WINDOW_DISK_LEDGER_H_
#define DEJA_FORMAT_WINDOW_DISK_LEDGER_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

namespace deja::format {

class DiskLedger {
 public:
  // The same for all processes of a job.
  struct Budget {
    uint64_t all = 0;       // bytes, of all processes
    uint64_t children = 0;  // of the child processes among them
  };
  // The ledger of the job, in `directory`; the first process makes it. Null if there cannot be one.
  static std::unique_ptr<DiskLedger> Open(const std::string& directory, const std::string& job_id,
                                          const Budget& budget);
  // The same if it exists; null otherwise.
  static std::unique_ptr<DiskLedger> OfJob(const std::string& directory, const std::string& job_id);
  // The one that the process with this tail had. Null if it had none, or it is gone.
  static std::unique_ptr<DiskLedger> OfTail(const std::string& tail_path);
  ~DiskLedger();
  DiskLedger(const DiskLedger&) = delete;
  DiskLedger& operator=(const DiskLedger&) = delete;

  // A child process until then. `earlier_bytes`: of the earlier attempts of this rank.
  void BecomeRank(uint64_t earlier_bytes = 0);
  // Sets the bytes in this process's files.
  void Publish(uint64_t bytes);
  // It writes no more. What it has stays.
  void Leave();

  // How many bytes this process's files may have.
  [[nodiscard]] uint64_t Share();

  // Closes the accounts of ranks whose process is gone: what they have is of those that are gone.
  void CountGone();
  // For the process that completes the folder of one that is gone. Room: bytes that may be added to
  // it. Added: bytes that were added or, if negative, removed.
  [[nodiscard]] uint64_t RoomForGone(bool is_child) const;
  void AddOfGone(bool is_child, int64_t bytes);
  // Bytes of ended child processes that should go, so that later ones have room. It is what is
  // above half of their pool, once that is three quarters full.
  [[nodiscard]] uint64_t ChildrenExcess() const;
  // What ranks that are gone have, as far as it is known.
  struct Gone {
    uint64_t all = 0;
    uint64_t earlier = 0;  // of these, those that have come again
  };
  // Counts the ranks that are gone now. Any process of the job.
  [[nodiscard]] Gone OfGoneRanks();
  // A look at the disk, begun when it was `known`, has found `found`. Returns how much of earlier
  // attempts should go.
  uint64_t Correct(const Gone& known, const Gone& found);

 private:
  struct Slot;
  struct Layout;

  DiskLedger() = default;
  static std::unique_ptr<DiskLedger> Map(const std::string& path, bool create);
  [[nodiscard]] uint64_t RankShare() const;
  // What there is for ranks, and for earlier attempts of theirs.
  [[nodiscard]] uint64_t OfRanks() const;
  [[nodiscard]] uint64_t OfEarlier() const { return OfRanks() / 2; }
  // What those that are gone have, without what is to be dropped of it.
  [[nodiscard]] uint64_t OfGone() const;
  void Publish(std::atomic<uint64_t>& sum, uint64_t bytes);
  static void Close(Layout& layout, Slot& slot, uint64_t pid);

  Layout* layout_ = nullptr;
  Slot* slot_ = nullptr;  // of a rank
  uint64_t bytes_ = 0;    // as published
  uint64_t looked_ns_ = 0;
};

// Its name in the folder of the tails.
std::string DiskLedgerName(const std::string& job_id);

}  // namespace deja::format

#endif  // DEJA_FORMAT_WINDOW_DISK_LEDGER_H_
