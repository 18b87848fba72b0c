// Interruption: a signal that asks a replay under way to end (Ctrl-C, a closed terminal, kill).
//
// While an object lives, SIGINT, SIGQUIT, SIGTERM and SIGHUP do not end this process: they are
// noted, so that whoever waits can end the programs first and remove what is temporary. What was
// ignored before stays ignored; what is started in the meantime gets its signals as usual. One
// object a process; main thread only.
#ifndef DEJA_CLI_INTERRUPTION_H_
#define DEJA_CLI_INTERRUPTION_H_

#include <csignal>
#include <map>

namespace deja::cli {

class Interruption {
 public:
  Interruption();
  ~Interruption();
  Interruption(const Interruption&) = delete;
  Interruption& operator=(const Interruption&) = delete;

  // The one that came first; 0: none.
  [[nodiscard]] static int Signal();

  // Whether the programs are to be ended now. The terminal sends SIGINT and SIGQUIT to them as
  // well: they have a moment to end by themselves, unless the user is in a hurry and repeats it.
  [[nodiscard]] static bool IsOver();

  // The same of a signal that gdb, which keeps the terminal, does not take for its own: the first
  // SIGTERM or SIGHUP; 0: none.
  [[nodiscard]] static int EndOfSession();

 private:
  std::map<int, struct sigaction> before_;
};

}  // namespace deja::cli

#endif  // DEJA_CLI_INTERRUPTION_H_
