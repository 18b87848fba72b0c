// Pager: a command's output goes through the user's pager, if it goes to a terminal.
//
// The program is $PAGER, else less where it is installed. None: PAGER is empty or cat, or TERM is
// dumb. Less shows a page that fits as it is, and ends. One object a process, made before the first
// line of output; the destructor waits until the user has seen enough. Main thread.
#ifndef DEJA_CLI_PAGER_H_
#define DEJA_CLI_PAGER_H_

#include <sys/types.h>

namespace deja::cli {

class Pager {
 public:
  // `is_wanted`: false makes an object that does nothing, for --json.
  explicit Pager(bool is_wanted);
  ~Pager();
  Pager(const Pager&) = delete;
  Pager& operator=(const Pager&) = delete;

 private:
  pid_t pid_ = 0;  // 0: there is none
};

}  // namespace deja::cli

#endif  // DEJA_CLI_PAGER_H_
