// MachineRecorder: keeps what files about the machine (preload/files/machine_files.h) said when the
// program opened them.
//
// An open whose content differs from the thread's last one is an Input event:
// - api: `open` for a file, `opendir` for a folder, `access` for a question whether it is there
// - key: MachineKey(name)
// - `result`: how many times this thread had opened it before
// - `error`: errno if that failed
// - data: the name, a zero, and the content
//
// The content is the file's bytes, the folder's entries, or nothing. Each entry ends with a zero,
// and that of a folder has a / in front. A file with many bytes has them not in data, but as a
// payload that `hash` names.
//
// Any thread, inside the guard; memory straight from the kernel. It never changes what the program
// gets, except for files that are entropy. Those are handed out as a copy, or the recorded bytes
// would not be the program's.
#ifndef DEJA_RECORDER_FILES_MACHINE_FILES_H_
#define DEJA_RECORDER_FILES_MACHINE_FILES_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "common/runtime/spin_lock.h"
#include "preload/calls/file_calls.h"

namespace deja::recorder {

class Recording;

class MachineRecorder {
 public:
  // As preload::Engine::MapPath and ReleasePath.
  const char* Map(Recording& rec, int dirfd, const char* path, preload::FileUse use,
                  std::span<char> buffer);
  static void Release(const char* mapped);

 private:
  struct Seen {
    uint64_t key;  // of thread, api and name; 0: free
    uint64_t content;
    uint32_t opens;
  };
  // Counts one more open of `key`; true if `content` is not what was seen last.
  bool IsNews(uint64_t key, uint64_t content, uint32_t& opens);

  static constexpr size_t kSeen = 1024;
  SpinLock lock_;
  Seen seen_[kSeen] = {};
};

}  // namespace deja::recorder

#endif  // DEJA_RECORDER_FILES_MACHINE_FILES_H_
