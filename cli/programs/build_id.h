// Which build a program or library is, by its GNU build id. Any thread. Uses elfutils.
#ifndef DEJA_CLI_PROGRAMS_BUILD_ID_H_
#define DEJA_CLI_PROGRAMS_BUILD_ID_H_

#include <string>

namespace deja::cli {

// Raw bytes; empty if the file has none, is no ELF file or cannot be read.
std::string BuildIdOf(const std::string& path);

}  // namespace deja::cli

#endif  // DEJA_CLI_PROGRAMS_BUILD_ID_H_
