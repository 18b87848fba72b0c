// What a replayed program may read of this machine if the trace is from elsewhere. It may read the
// system, the program with what is installed beside it, and its working directory.
//
// Main thread.
#ifndef DEJA_CLI_FENCE_READ_RULES_H_
#define DEJA_CLI_FENCE_READ_RULES_H_

#include <string>
#include <vector>

namespace deja::cli {

// Folders and files of every system: programs, libraries, and those files of /etc that the C
// library, Python and CUDA look at. No user's own files, and no keys.
std::vector<std::string> SystemPaths();

// Folders and files of one program. `executable`: its path; `argv0`: its first argument (a Python
// environment's interpreter is a link there). Never a home folder as a whole, nor a folder that
// contains one.
std::vector<std::string> ProgramPaths(const std::string& executable, const std::string& argv0,
                                      const std::string& working_directory);

}  // namespace deja::cli

#endif  // DEJA_CLI_FENCE_READ_RULES_H_
