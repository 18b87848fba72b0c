// What a fork shares and an image must have for itself: positions in open files. And what it shares
// that cannot be had twice: connections, memory, devices.
//
// Main thread of a program that has no other; the guard must be held.
#ifndef DEJA_REPLAYER_FORKS_FORK_FILES_H_
#define DEJA_REPLAYER_FORKS_FORK_FILES_H_

#include <sys/types.h>

#include <string>
#include <utility>
#include <vector>

namespace deja::replayer {

class ForkFiles {
 public:
  // Before the program begins: what it has got from its parent is not its own, and its
  // images share it as well.
  void NoteInherited();
  // Notes what is open. Empty: all of it can be opened once more; else what cannot.
  std::string Note(const std::string& scratch);
  // Opens it once more, at the positions that were noted, under the same numbers. Empty: done; else
  // what could not be opened.
  [[nodiscard]] std::string OpenAgain() const;

 private:
  struct File {
    int fd;
    int flags;             // of the file
    int descriptor_flags;  // FD_CLOEXEC
    off_t position;
    std::string path;  // empty: /proc/self/fd leads to it
    int same_as = -1;  // another number for the same open file
  };
  std::string NoteOne(int fd, const std::string& scratch);

  std::vector<File> files_;
  std::vector<std::pair<dev_t, ino_t>> inherited_;  // pipes and sockets
};

// The file in a replay's scratch folder that holds the table of its pipes
// (preload/meet/pipe_table.h).
inline constexpr char kPipesFile[] = "/pipes.table";

// Memory that the program shares with others, running timers, child processes: empty if there is
// none of that. The table of pipes in `scratch` does not count. A program that has pipes open has
// no image (ForkFiles::Note); one that has none does not look into it.
std::string SharedWithOthers(const std::string& scratch);

}  // namespace deja::replayer

#endif  // DEJA_REPLAYER_FORKS_FORK_FILES_H_
