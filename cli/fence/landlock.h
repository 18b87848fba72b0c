// Landlock: the kernel's rules for which files a replayed program reaches by name. They also keep
// it from connecting to processes outside and from signalling them. What the running kernel does
// not know is left out.
//
// A ruleset is made by the starter, and put in force by the child that becomes the program
// (cli/fence/fence.h). Any thread.
#ifndef DEJA_CLI_FENCE_LANDLOCK_H_
#define DEJA_CLI_FENCE_LANDLOCK_H_

#include <string>
#include <vector>

namespace deja::cli {

struct LandlockRules {
  // Folders and files. Not fenced at all with `fence_writes` off.
  std::vector<std::string> writable;
  bool fence_writes = true;
  // What may be read and run; all that is writable may be, too. In force with `fence_reads`.
  std::vector<std::string> readable;
  bool fence_reads = false;
  bool fence_network = true;
  std::string devices = "/dev";  // where those of GPUs are
};

// The version of the kernel's interface; 0: it has none, or does not let us.
int LandlockAbi();

// A descriptor of the rules; -1: there is nothing that could be put in force.
int MakeLandlockRuleset(const LandlockRules& rules);

// For this thread and all that it starts, for good. Needs no_new_privs. Calls the kernel only.
bool EnterLandlock(int ruleset) noexcept;

}  // namespace deja::cli

#endif  // DEJA_CLI_FENCE_LANDLOCK_H_
