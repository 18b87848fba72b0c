// Where the parts of Deja are, relative to the running executable: in a build tree and when
// installed.
//
// Main thread only; paths are absolute; errors say what was looked for and where.
#ifndef DEJA_CLI_INSTALL_LAYOUT_H_
#define DEJA_CLI_INSTALL_LAYOUT_H_

#include <string>

#include "common/result.h"

namespace deja::cli {

// "libdeja_record.so", "libdeja_replay.so": the library to preload.
Result<std::string> FindLibrary(const std::string& name);
// The folder that holds libnccl.so.2 of loopback and nothing else.
Result<std::string> FindLoopbackDirectory();
// A file of gdb/, such as "deja_gdb.py".
Result<std::string> FindGdbScript(const std::string& name);
// The folder that Python finds in front of PYTHONPATH (python/).
Result<std::string> FindPythonDirectory();
// This executable.
std::string OwnPath();

}  // namespace deja::cli

#endif  // DEJA_CLI_INSTALL_LAYOUT_H_
