// Starting a job and seeing it to its end: one command, or N ranks on this machine.
//
// One command (ranks == 0) keeps the terminal, the process group and the environment, so that `deja
// record -- CMD` behaves as CMD does. N ranks get torchrun's variables and a process group of their
// own. Signals that reach `deja` are passed on to that group. When one rank fails, the others have
// a grace time to notice before they are terminated. This process is a child subreaper: it becomes
// the parent of orphaned descendants, so it knows how they ended.
//
// Main thread only, and no other threads while it runs (it forks). Failing to start the command is
// part of the JobEnd, with the exit code a shell would give.
#ifndef DEJA_CLI_RECORD_LAUNCHER_H_
#define DEJA_CLI_RECORD_LAUNCHER_H_

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace deja::cli {

struct LaunchOptions {
  std::vector<std::string> program;
  int ranks = 0;  // 0: one process that is started as it is
  // Variables to set in every process, and folders or files to put in front of list variables.
  std::vector<std::pair<std::string, std::string>> environment;
  std::string loopback_directory;  // goes in front of LD_LIBRARY_PATH; empty: not used
  std::string preload;             // goes in front of LD_PRELOAD; empty: not used
  std::string python;              // where a Python finds Deja's side of PyTorch; empty: not used
  bool fixed_addresses = false;    // switch address-space randomisation off
  // Variable that tells each started process its own id: it outlives what the command execs.
  std::string pid_variable;
  std::chrono::milliseconds grace{5000};
  // Called when a process has failed while others still run, and when the job is asked to end.
  std::function<void(const std::string& what)> on_trouble;
  std::function<void()> tick;  // called about once a second; may be empty
};

struct ProcessEnd {
  pid_t pid = 0;
  int rank = -1;  // of a process that this launcher started as a rank; -1: any other descendant
  int exit_code = -1;  // -1 when a signal ended it
  int signal = 0;
  bool terminated = false;  // it ended after the launcher had told the job to
};

struct JobEnd {
  int exit_code = 0;  // of the command, or of the rank that failed first; 128 + signal
  std::vector<ProcessEnd> ends;
  bool fixed_addresses = false;  // what really was the case
  std::string start_error;       // why the command could not be started; empty if it was
};

JobEnd RunJob(const LaunchOptions& options);

// From here on a write beyond the limit of file sizes (ulimit -f) is an error and does not end this
// process. Processes that are started get the signal as it was before.
void IgnoreFileSizeSignal();

// "exit code 3", "SIGSEGV"
std::string DescribeEnd(int exit_code, int signal);

}  // namespace deja::cli

#endif  // DEJA_CLI_RECORD_LAUNCHER_H_
