// Interruption: a signal that asks a replay under way to end (Ctrl-C, a closed terminal, kill).
//
// While an object lives, SIGINT, SIGQUIT, SIGTERM and SIGHUP do not end this process. They are
// noted, so that the waiting code can first end the programs and remove what is temporary. Signals
// that were ignored before stay ignored. Processes that are started in the meantime get their
// signals as usual. One object a process; main thread only.
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
  // well. They have a moment to end by themselves, unless the user repeats the signal.
  [[nodiscard]] static bool IsOver();

  // The same of a signal that gdb, which keeps the terminal, does not take for its own: the first
  // SIGTERM or SIGHUP; 0: none.
  [[nodiscard]] static int EndOfSession();

 private:
  std::map<int, struct sigaction> before_;
};

}  // namespace deja::cli

#endif  // DEJA_CLI_INTERRUPTION_H_
