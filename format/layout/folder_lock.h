// FolderLock: who completes a rank's folder does it alone.
//
// Several `deja record` of one job may sweep the same folders as the last ranks end. A lock of the
// kernel's on events.deja, which ends with its holder's descriptor; the constructor waits for it.
// On a file system without such locks there is none, and nothing is said. Not for the process that
// records: the folder of a live process is never completed.
#ifndef DEJA_FORMAT_LAYOUT_FOLDER_LOCK_H_
#define DEJA_FORMAT_LAYOUT_FOLDER_LOCK_H_

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include "format/wire/frame_format.h"

namespace deja::format {

class FolderLock {
 public:
  // Locks the whole folder, until this is destroyed. A thread that holds it already would wait for
  // itself.
  explicit FolderLock(const std::string& folder)
      // To be written, as NFS wants it for such a lock.
      : fd_(open((folder + "/" + kEventsFile).c_str(),
                 O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)) {
    while (fd_ >= 0 && flock(fd_, LOCK_EX) != 0 && errno == EINTR) {
    }
  }
  ~FolderLock() {
    if (fd_ >= 0) close(fd_);
  }
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

 private:
  const int fd_;
};

}  // namespace deja::format

#endif  // DEJA_FORMAT_LAYOUT_FOLDER_LOCK_H_
