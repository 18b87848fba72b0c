// What the threads of all processes below this one wait for: read from /proc, without stopping any
// of them.
//
// A wait is endless if only another thread of these processes can end it. Examples: a read of a
// pipe that nothing outside holds, a futex without a timeout, a wait for a child. A thread counts
// as one that may move where the kernel does not say (no /proc/PID/syscall, another user's
// process).
//
// Values; main thread.
#ifndef DEJA_CLI_REPLAY_WATCH_PROCESS_WAITS_H_
#define DEJA_CLI_REPLAY_WATCH_PROCESS_WAITS_H_

#include <sys/types.h>

#include <cstdint>
#include <set>
#include <string>
#include <vector>

namespace deja::cli {

enum class WaitKind {
  kNone,     // runs, is stopped, or waits for something that may come from outside
  kTimed,    // for a time
  kEndless,  // until another of these threads does something
};

struct ThreadWait {
  pid_t pid = 0;
  pid_t tid = 0;
  WaitKind kind = WaitKind::kNone;
  uint64_t switches = 0;  // how often it has begun to wait
  std::string name;
  std::string what;  // "reads pipe:[4026]"; empty for kNone
};

struct ProcessWaits {
  std::vector<ThreadWait> threads;  // by process and thread
  std::set<pid_t> zombies;          // have ended, and have not been waited for
};

struct OutsideFiles {
  // Pipes and sockets, as /proc/PID/fd shows them ("pipe:[4026]"): other processes have their other
  // ends.
  std::set<std::string> files;
  bool sockets = false;  // any socket may be connected to something outside
};
// What this process has open, and so may share with others.
OutsideFiles OwnOpenFiles();

// `but`: children of this process to leave out, and what is below them.
ProcessWaits WaitsBelowThis(const std::set<pid_t>& but, const OutsideFiles& outside);

// One of the processes has a GPU open: it may wait for what that computes.
bool UsesDevice(const ProcessWaits& waits);

// The processes that hold the other end of a pipe ("pipe:[4026]"), to write to it.
std::vector<pid_t> WritersOf(const std::string& pipe, const ProcessWaits& waits);

}  // namespace deja::cli

#endif  // DEJA_CLI_REPLAY_WATCH_PROCESS_WAITS_H_
