// What a replayed program may read of this machine, where the trace is from elsewhere: the system,
// the program with what is installed beside it, and the folder that it runs in.
//
// Main thread.
#ifndef DEJA_CLI_FENCE_READ_RULES_H_
#define DEJA_CLI_FENCE_READ_RULES_H_

#include <string>
#include <vector>

namespace deja::cli {

// Folders and files of every system: programs, libraries, and those files of /etc that the C
// library, Python and CUDA look at. Nobody's own files, and no keys.
std::vector<std::string> SystemPaths();

// Of a program by its path, its first argument (a Python environment's interpreter is a link there)
// and its working directory. Never a home folder as a whole, nor a folder that one is in.
std::vector<std::string> ProgramPaths(const std::string& executable, const std::string& argv0,
                                      const std::string& working_directory);

}  // namespace deja::cli

#endif  // DEJA_CLI_FENCE_READ_RULES_H_
