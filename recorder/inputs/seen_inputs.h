// SeenInputs: which identity values (pid, host name, CPU count …) have been recorded, and with
// which content. A program that asks a thousand times has one event.
//
// A fixed table: when it is full, values are recorded again. Any thread.
#ifndef DEJA_RECORDER_INPUTS_SEEN_INPUTS_H_
#define DEJA_RECORDER_INPUTS_SEEN_INPUTS_H_

#include <cstddef>
#include <cstdint>

#include "common/runtime/spin_lock.h"

namespace deja::recorder {

class SeenInputs {
 public:
  // True if (api, key) was recorded with `content` (a hash of result, error and bytes) last.
  bool AlreadySeen(uint32_t api, uint64_t key, uint64_t content) {
    Hold hold(lock_);
    for (size_t i = 0; i < size_; ++i) {
      Entry& entry = entries_[i];
      if (entry.api != api || entry.key != key) continue;
      bool same = entry.content == content;
      entry.content = content;
      return same;
    }
    if (size_ < kEntries) entries_[size_++] = {api, key, content};
    return false;
  }

 private:
  static constexpr size_t kEntries = 128;
  struct Entry {
    uint32_t api;
    uint64_t key;
    uint64_t content;
  };
  SpinLock lock_;
  Entry entries_[kEntries] = {};
  size_t size_ = 0;
};

}  // namespace deja::recorder

#endif  // DEJA_RECORDER_INPUTS_SEEN_INPUTS_H_
