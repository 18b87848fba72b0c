// Processes of the program: stable names, and how they reach the processes that the program makes.
//
// A process is named by its path from the first one of its job: THREAD/NUMBER for each process on
// the way. NUMBER counts what that thread has made (docs/FORMAT.md, "Children"). A fork child has
// its name by memory. An exec'd image gets it in the environment, with everything that makes it a
// recorded or replayed process, whatever environment the program passes.
//
// Nothing here allocates. OwnProcessName is made on first use and changes in a fork child only; the
// functions for the hooks say where they may be called.
#ifndef DEJA_PRELOAD_PROCESS_PROCESS_NAME_H_
#define DEJA_PRELOAD_PROCESS_PROCESS_NAME_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace deja::preload {

inline constexpr size_t kMaxProcessPath = 400;

struct ProcessName {
  uint8_t root[16] = {};            // random: the process that the tree begins with
  char path[kMaxProcessPath] = {};  // empty: this is that process
  int pid = 0;                      // whose name this is, as the kernel says it
  int root_pid = 0;                 // of the first process of the tree, as the kernel says it
  int recorded_pid = 0;             // in a replay: the pid that it believes to have; 0: not known
  int recorded_parent = 0;
  bool is_known = false;  // false for processes that came about behind our back

  // False for the first process of the tree, in whichever image.
  [[nodiscard]] bool IsChild() const {
    return std::string_view(path).find('/') != std::string_view::npos;
  }
  [[nodiscard]] std::string_view root_view() const {
    return {reinterpret_cast<const char*>(root), sizeof root};
  }
};

const ProcessName& OwnProcessName();
// True if the name is the calling process's own: false in a vfork child and in one that was made
// by a bare clone. One system call.
bool HasProcessName();
// The path of the `number`-th process that the calling thread makes, as it is before any exec;
// empty: it has none.
std::string_view WriteChildPath(uint32_t number, std::span<char, kMaxProcessPath> out);
// For a replay: the pids that this process believes to have.
void SetRecordedPids(int pid, int parent);

// True for the pipe or socket with this inode if the first process of the tree was born with it.
// Traffic between the program's own processes is live in a replay.
bool CameFromOutside(uint64_t inode);

// In a child that fork has made: it is the `number`-th process of the calling thread. Async-signal-
// safe.
void EnterForkChild(uint32_t number, int recorded_pid);
// In a child that the hooks did not see coming.
void ForgetProcessName();

// The environment for another image of this process, for the image of a vfork child, or for a
// process that is being spawned. Usage, on the stack, since a vfork child has nothing else:
//   EnvironmentSize size = SizeOfEnvironment(env);
//   char* const* passed = FillEnvironment(env, next, alloca(slots…), alloca(text…));
// `env` itself is returned where nothing is to be added: Deja is off, `env` is that of another
// session of Deja's, or StopPassingOn was called.
enum class NextImage { kOwn, kVforkChild, kSpawned };
struct NextProcess {
  NextImage image = NextImage::kOwn;
  uint32_t number = 0;  // of the thread's processes, unless kOwn
  int recorded_pid = 0;
};
struct EnvironmentSize {
  size_t slots = 0;
  size_t text = 0;
};
// The room for FillEnvironment, and the environment to pass on: in `slots` and `text`, or `env`
// itself. Safe in a vfork child.
EnvironmentSize SizeOfEnvironment(char* const* env);
char* const* FillEnvironment(char* const* env, const NextProcess& next, std::span<char*> slots,
                             std::span<char> text);

// From now on this process's environments are handed on as the program has them: what it execs
// could not be recorded. For good, and in its forked children.
void StopPassingOn();

}  // namespace deja::preload

#endif  // DEJA_PRELOAD_PROCESS_PROCESS_NAME_H_
