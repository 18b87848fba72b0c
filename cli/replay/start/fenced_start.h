// FencedStart: all that a replayed program is started with, and how a process becomes it.
//
// `deja replay` starts it in a child. gdb starts a program by a command of its own, which is `deja
// run-fenced` (no user needs it). That command finds in a file what it becomes, so that nothing of
// a trace goes through gdb or a shell.
#ifndef DEJA_CLI_REPLAY_START_FENCED_START_H_
#define DEJA_CLI_REPLAY_START_FENCED_START_H_

#include <cstdint>
#include <string>
#include <vector>

#include "cli/fence/fence.h"
#include "common/result.h"

namespace deja::cli {

// FencedStart::inherited is about descriptors below this number.
inline constexpr int kInheritedPlaces = 64;

struct FencedStart {
  std::string executable;
  std::vector<std::string> argv;
  std::vector<std::string> environment;  // "NAME=value", complete
  std::string working_directory;
  int umask = -1;  // -1: as it is
  // Bit N: descriptor N, of 3 to 63, is open from the start. So the program's own get the numbers
  // that they had in the recording. Nothing can be read or written there.
  uint64_t inherited = 0;
  FenceRules fence;
  // A descriptor of this process that the program gets under its number; -1: none. Not in a file.
  int handed_down = -1;
};

// What is made before the fork, so that the child only calls the kernel. Must not move.
class PreparedStart {
 public:
  explicit PreparedStart(FencedStart start);
  PreparedStart(const PreparedStart&) = delete;
  PreparedStart& operator=(const PreparedStart&) = delete;

  // Becomes the program, with fixed addresses, behind its fence. Returns errno if it cannot.
  [[nodiscard]] int Become() const noexcept;

 private:
  FencedStart start_;
  std::vector<char*> argv_;
  std::vector<char*> environment_;
  Fence fence_;
};

Status SaveStart(const FencedStart& start, const std::string& path);
Result<FencedStart> LoadStart(const std::string& path);

// `deja run-fenced FILE FOLDER CHECKPOINT PROGRAM [ARGUMENT…]`: becomes what the file says, with a
// scratch folder and a checkpoint of its own, and these arguments if there are any. Only returns if
// it cannot.
int RunFenced(int argc, char** argv);

// The name of that command.
inline constexpr const char* kRunFenced = "run-fenced";

}  // namespace deja::cli

#endif  // DEJA_CLI_REPLAY_START_FENCED_START_H_
