// Whether a file is a program that a replay can serve. Any thread.
#ifndef DEJA_CLI_PROGRAMS_PROGRAM_FILE_H_
#define DEJA_CLI_PROGRAMS_PROGRAM_FILE_H_

#include <string>

namespace deja::cli {

// Why the replay library cannot be loaded into it, as a text after "PATH …"; empty: it can.
std::string WhyNoProgram(const std::string& path);

}  // namespace deja::cli

#endif  // DEJA_CLI_PROGRAMS_PROGRAM_FILE_H_
