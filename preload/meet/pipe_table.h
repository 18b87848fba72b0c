// PipeTable: what the processes of a rank know together about pipes and socketpairs of their own.
// It also has what robust mutexes have no room for (robust_mutexes.h).
//
// A pipe is found by its inode, however a process got it. The table notes the writers and readers:
// a message that one thread writes and one reads whole costs a comparison. A replay puts the turns
// of several writers there.
//
// Plain words in a file that all processes map (format/tail/job_memory.h). The oldest entries give
// way to new ones: a pipe that is found no more is like one without an entry. Any thread, any
// process; lock-free; a forked child keeps the mapping.
#ifndef DEJA_PRELOAD_MEET_PIPE_TABLE_H_
#define DEJA_PRELOAD_MEET_PIPE_TABLE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

namespace deja::preload {

struct PipeSlot {
  static constexpr uint32_t kWriters = 1;
  static constexpr uint32_t kReaders = 2;

  std::atomic<uint64_t> inode;   // 0: free
  std::atomic<uint64_t> key;     // what it is called in every run
  std::atomic<uint64_t> peer;    // of the other end of a socketpair; 0: a pipe
  std::atomic<uint32_t> made;    // which entry of the table this is, by age
  std::atomic<uint32_t> writer;  // the thread that wrote first; 0: none did
  std::atomic<uint32_t> reader;
  std::atomic<uint32_t> several;  // kWriters, kReaders: others have done so, too
  std::atomic<uint32_t> reads;    // that have been recorded
  std::atomic<uint64_t> alone;    // bytes that the first reader has read before others came
  // Used by a replay.
  std::atomic<uint32_t> turn;   // the process that writes; 0: none does
  std::atomic<uint32_t> epoch;  // a futex word: counts writes
  std::atomic<uint32_t> free;   // 1: the order has given way
  std::atomic<uint32_t> unused;
  std::atomic<uint64_t> written;  // bytes
};

struct MutexSlot {
  std::atomic<uint64_t> key;    // what it is called in every run; 0: free
  std::atomic<uint32_t> order;  // how often it has been taken, or whose turn it is
  std::atomic<uint32_t> unused;
};

class PipeTable {
 public:
  static constexpr uint32_t kMutexes = 4096;

  // The table in `path`, made by who comes first. Null: there cannot be one. Never unmapped.
  static PipeTable* Map(const std::string& path);

  // Null: it has no entry.
  PipeSlot* Find(uint64_t inode);
  // Notes a new pipe, or one end of a socketpair. Null: there is no room for it.
  PipeSlot* Add(uint64_t inode, uint64_t key, uint64_t peer);
  // That of a FIFO, which several processes open at the same moment: all get the same entry, and it
  // begins once.
  PipeSlot* FindOrAdd(uint64_t inode, uint64_t key);
  // Notes a new mutex. Its number; kMutexes: there is no room for it.
  uint32_t AddMutex(uint64_t key);
  // Null: no mutex has this number.
  MutexSlot* Mutex(uint32_t number);
  // What the calling thread is called in `writer` and `reader`. Not 0.
  uint32_t OwnToken();

 private:
  static constexpr size_t kSlots = 4096;
  static constexpr size_t kProbes = 16;

  std::atomic<uint64_t> magic_;
  std::atomic<uint32_t> made_;
  std::atomic<uint32_t> tokens_;
  std::atomic<uint32_t> mutexes_made_;
  std::atomic<uint32_t> unused_;
  PipeSlot slots_[kSlots];
  MutexSlot mutexes_[kMutexes];
};

}  // namespace deja::preload

#endif  // DEJA_PRELOAD_MEET_PIPE_TABLE_H_
