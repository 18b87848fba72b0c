// An AppendFile for a file of the trace that is written inside the user's process.
//
// The program owns the table of descriptors: it may close ours, and open something of its own under
// the same number. Before each write, the descriptor is compared with the file that it was made
// for, and opened again from the path if it differs. Never is a byte written into a file of the
// program. Descriptors are high and close-on-exec.
//
// Owner: RankWriter. One thread at a time. Callers block signals (SIGXFSZ).
#ifndef DEJA_FORMAT_LOG_PROCESS_FILE_H_
#define DEJA_FORMAT_LOG_PROCESS_FILE_H_

#include <memory>
#include <string>

#include "common/os/file.h"
#include "common/result.h"

namespace deja::format {

// Descriptors held for the time when the process has no free one left.
class SpareFds {
 public:
  // Opens the descriptors that are not held yet. No error: fewer may be held.
  void Reserve();
  // Gives one back to the system; false if there is none.
  bool Release();
  void CloseAll();

 private:
  int fds_[2] = {-1, -1};
};

// A file of a recording that the process writes; the program may close or replace its descriptor.
class ProcessFile : public AppendFile {
 public:
  // Makes room for `bytes` after the end, so that writing them cannot fail for lack of space. False
  // if there is none; true also where the file system cannot promise anything.
  virtual bool Reserve(uint64_t bytes) = 0;
  // Gives back what is reserved and not used, but for a last block: a launcher may add to the file.
  virtual void ReleaseReserve() = 0;
  // The file has a new name.
  virtual void Renamed(const std::string& path) = 0;
  // In a child that inherited the descriptor.
  virtual void CloseInChild() = 0;
};

enum class FileStart { kCreate, kContinue };

// Creates `path`, which must not exist, or opens it to append to it. `spare` may be null.
Result<std::unique_ptr<ProcessFile>> OpenProcessFile(const std::string& path, FileStart start,
                                                     SpareFds* spare);

}  // namespace deja::format

#endif  // DEJA_FORMAT_LOG_PROCESS_FILE_H_
