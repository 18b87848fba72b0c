// VainWaits: how often threads have asked for the end of a process that had not ended.
//
// Any thread. Constant in size: what does not fit is counted as 0.
#ifndef DEJA_RECORDER_INPUTS_VAIN_WAITS_H_
#define DEJA_RECORDER_INPUTS_VAIN_WAITS_H_

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <iterator>

#include "common/runtime/spin_lock.h"

namespace deja::recorder {

class VainWaits {
 public:
  // The calling thread has asked for process `pid` in vain once more. Returns how often now.
  uint64_t Count(int pid) {
    if (!lock_.LockBriefly()) return 0;
    Entry* entry = Find(Thread(), pid);
    if (entry == nullptr) entry = Find(0, 0);
    uint64_t count = 0;
    if (entry != nullptr) {
      entry->thread = Thread();
      entry->pid = pid;
      count = ++entry->count;
    }
    lock_.Unlock();
    return count;
  }
  // It has ended: returns how often, and begins again.
  uint64_t Take(int pid) {
    if (!lock_.LockBriefly()) return 0;
    uint64_t count = 0;
    if (Entry* entry = Find(Thread(), pid); entry != nullptr) {
      count = entry->count;
      *entry = {};
    }
    lock_.Unlock();
    return count;
  }

 private:
  struct Entry {
    long thread = 0;
    int pid = 0;
    uint64_t count = 0;
  };
  static long Thread() { return syscall(SYS_gettid); }
  Entry* Find(long thread, int pid) {
    const auto it = std::find_if(std::begin(entries_), std::end(entries_), [&](const Entry& e) {
      return e.thread == thread && e.pid == pid;
    });
    return it == std::end(entries_) ? nullptr : it;
  }

  static constexpr int kEntries = 64;
  SpinLock lock_;
  Entry entries_[kEntries];
};

}  // namespace deja::recorder

#endif  // DEJA_RECORDER_INPUTS_VAIN_WAITS_H_
