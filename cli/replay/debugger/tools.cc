#include "cli/replay/debugger/tools.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/replay/debugger/python_debugging.h"

namespace deja::cli {
namespace {

// Folders of Valgrind's tools, by distribution.
constexpr std::array<const char*, 4> kValgrindFolders = {
    "/usr/libexec/valgrind", "/usr/lib/valgrind", "/usr/lib/x86_64-linux-gnu/valgrind",
    "/usr/local/libexec/valgrind"};
constexpr std::string_view kMemcheck = "/memcheck-amd64-linux";

}  // namespace

Status UseProfile(ReplayTarget& target) {
  return MarkForPython("--profile", "/with-profile", target);
}

Status UseCoverage(ReplayTarget& target) {
  return MarkForPython("--coverage", "/with-coverage", target);
}

Status UseValgrind(ReplayTarget& target) {
  if (target.is_forked)
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("replaying: rank {}: --valgrind: the rank is a forked child of its "
                            "launcher; replay it without",
                            target.rank));
  for (const char* folder : kValgrindFolders) {
    std::string tool = folder + std::string(kMemcheck);
    if (access(tool.c_str(), X_OK) != 0) continue;
    std::vector<std::string> argv = {tool, "--tool=memcheck", "--child-silent-after-fork=yes",
                                     target.executable};
    for (size_t i = 1; i < target.argv.size(); ++i) argv.push_back(target.argv[i]);
    target.argv = std::move(argv);
    target.executable = std::move(tool);
    // The launcher sets these two.
    target.environment.emplace_back("VALGRIND_LAUNCHER=/usr/bin/valgrind");
    target.environment.push_back(fmt::format("VALGRIND_LIB={}", folder));
    // It keeps files of its own there, which nothing outside of the scratch folder may be.
    static constexpr std::string_view kTemporary = "TMPDIR=";
    std::erase_if(target.environment,
                  [](const std::string& entry) { return entry.starts_with(kTemporary); });
    target.environment.push_back(std::string(kTemporary) + target.scratch);
    return {};
  }
  return Fail(ErrorCode::kNotFound,
              fmt::format("replaying: rank {}: --valgrind: Valgrind is not installed; apt-get "
                          "install valgrind",
                          target.rank));
}

}  // namespace deja::cli
