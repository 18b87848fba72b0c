#include "cli/replay/debugger/python_debugging.h"

#include <fmt/format.h>
#include <sys/wait.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <string_view>

#include "cli/own_variables.h"

namespace deja::cli {
namespace {

// The LEFT of python/deja/interpreter/debugger.py.
constexpr int kLeft = 130;
// The name by which python/sitecustomize.py knows that the debugger is wanted.
constexpr const char* kMark = "/with-pdb";
constexpr std::string_view kFolder = env::kPython.prefix;

bool IsPlace(const std::string& line) {
  const size_t colon = line.rfind(':');
  if (colon == std::string::npos || colon == 0 || colon + 1 == line.size()) return false;
  const auto is_digit = [](unsigned char c) { return std::isdigit(c) != 0; };
  return std::all_of(line.begin() + static_cast<ptrdiff_t>(colon) + 1, line.end(), is_digit);
}

}  // namespace

bool IsPython(const std::string& executable) {
  return std::filesystem::path(executable).filename().string().rfind("python", 0) == 0;
}

Status MarkForPython(const std::string& option, const std::string& mark, ReplayTarget& target) {
  const auto refuse = [&](const std::string& why) {
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("replaying: rank {}: {}: {}", target.rank, option, why));
  };
  if (!IsPython(target.executable))
    return refuse(fmt::format("{} is not Python{}", target.executable,
                              option == "--pdb" ? "; use --gdb" : ""));
  if (target.is_forked)
    return refuse(
        fmt::format("the rank is a forked child of its launcher's interpreter; {}replay it without "
                    "{}",
                    option == "--pdb" ? "write breakpoint() into the script, and " : "", option));
  for (std::string& entry : target.environment)
    if (entry.compare(0, kFolder.size(), kFolder) == 0)
      entry += fmt::format(":{}{}", entry.substr(kFolder.size(), entry.find(':') - kFolder.size()),
                           mark);
  return {};
}

Status UsePythonDebugger(const std::vector<std::string>& lines, ReplayTarget& target) {
  std::string all;
  for (const std::string& line : lines) {
    if (!IsPlace(line) || line.find(',') != std::string::npos)
      return Fail(ErrorCode::kInvalidArgument,
                  fmt::format("replaying: rank {}: --pdb: --break {}: not a file and a line; write "
                              "it as train.py:88",
                              target.rank, line));
    all += (all.empty() ? "" : ",") + line;
  }
  DEJA_RETURN_IF_ERROR(MarkForPython("--pdb", kMark, target));
  if (!all.empty()) target.environment.push_back(Entry(env::kPdbBreaks, all));
  return {};
}

bool LeftPythonDebugger(int status) {
  return WIFEXITED(status) && WEXITSTATUS(status) == kLeft;
}

}  // namespace deja::cli
