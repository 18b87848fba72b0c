// What a fork shares and an image must have for itself: positions in open files. And what it shares
// that cannot be had twice: connections, memory, devices.
//
// Main thread; the guard must be held. What is called while other threads are stopped
// (bystanders.h) takes no lock and allocates nothing.
#ifndef DEJA_REPLAYER_FORKS_FORK_FILES_H_
#define DEJA_REPLAYER_FORKS_FORK_FILES_H_

#include <sys/types.h>

#include <string>
#include <utility>
#include <vector>

#include "replayer/forks/reason.h"

namespace deja::replayer {

class ForkFiles {
 public:
  // Before the program begins: what it has got from its parent is not its own, and its
  // images share it as well.
  void NoteInherited();
  // Notes what is open. Empty: all of it can be opened once more; else what cannot.
  Reason Note(const std::string& scratch);
  // Other threads are stopped: it is still what is open, at the same positions.
  [[nodiscard]] bool IsAsNoted() const;
  // The same, in an image: opens it once more, at the positions that were noted, under the same
  // numbers. Empty: done; else what could not be opened.
  [[nodiscard]] Reason OpenAgain() const;

 private:
  struct File {
    int fd;
    int flags;             // of the file
    int descriptor_flags;  // FD_CLOEXEC
    off_t position;
    std::string path;  // empty: /proc/self/fd leads to it
    int same_as = -1;  // another number for the same open file
  };
  struct Seen {
    int fd;
    dev_t device;
    ino_t inode;
    long flags;
    long position;
    friend bool operator==(const Seen&, const Seen&) = default;
  };
  static Seen Look(int fd);
  Reason NoteOne(int fd, const std::string& scratch);

  std::vector<File> files_;
  std::vector<Seen> seen_;                          // in the order of /proc
  std::vector<std::pair<dev_t, ino_t>> inherited_;  // pipes and sockets
};

// The file in a replay's scratch folder that holds the table of its pipes
// (preload/meet/pipe_table.h).
inline constexpr char kPipesFile[] = "/pipes.table";

// Memory that the program shares with others, running timers, child processes: empty if there is
// none of that. The table of pipes in `scratch` does not count. A program that has pipes open has
// no image (ForkFiles::Note); one that has none does not look into it.
// Other threads may be stopped.
Reason SharedWithOthers(const std::string& scratch);

}  // namespace deja::replayer

#endif  // DEJA_REPLAYER_FORKS_FORK_FILES_H_
