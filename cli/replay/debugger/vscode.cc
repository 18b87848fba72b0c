#include "cli/replay/debugger/vscode.h"

#include <fmt/format.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "cli/install_layout.h"
#include "cli/replay/debugger/debugpy.h"
#include "cli/replay/debugger/python_debugging.h"

namespace deja::cli {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

std::string ForShell(const std::string& word) {
  std::string quoted = "'";
  for (const char c : word) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

// What VS Code starts as gdb: the same replay, with gdb's options from VS Code.
std::string Script(const VsCodeReplay& replay, const fs::path& folder) {
  std::string command = ForShell(OwnPath());
  for (size_t i = 1; i < replay.command.size(); ++i) {
    const std::string& word = replay.command[i];
    if (word == "--vscode") continue;
    command += " " + ForShell(word);
    if (i == 1) command += " --gdb --debugger-args \"$*\"";
  }
  return fmt::format("#!/bin/sh\n# gdb for VS Code: {} of {}\ncd {} && exec {}\n",
                     fmt::format("rank {}", replay.rank),
                     fs::path(replay.trace).filename().string(), ForShell(folder.string()),
                     command);
}

Json Configuration(const VsCodeReplay& replay, const VsCodeFiles& files, const fs::path& folder) {
  return {{"name", files.name},
          {"type", "cppdbg"},
          {"request", "launch"},
          {"program", replay.program},
          {"cwd", folder.string()},
          {"MIMode", "gdb"},
          {"miDebuggerPath", files.script},
          {"customLaunchSetupCommands", Json::array()},
          {"launchCompleteCommand", "exec-run"}};
}

Json PythonConfiguration(const std::string& name) {
  return {{"name", name},
          {"type", "debugpy"},
          {"request", "attach"},
          {"connect", {{"host", "localhost"}, {"port", kDebugpyPort}}},
          {"justMyCode", true}};
}

// What is in the file; an object without configurations where there is none.
Result<Json> ReadLaunch(const std::string& path, const std::vector<Json>& configurations) {
  std::error_code error;
  if (!fs::exists(path, error))
    return Json{{"version", "0.2.0"}, {"configurations", Json::array()}};
  std::ifstream in(path);
  const std::string text((std::istreambuf_iterator<char>(in)), {});
  Json launch = Json::parse(text, nullptr, false);
  if (launch.is_object() && !launch.contains("configurations"))
    launch["configurations"] = Json::array();
  if (launch.is_object() && launch["configurations"].is_array()) return launch;
  std::string to_add;
  for (const Json& one : configurations)
    to_add += "\n" + one.dump(2, ' ', false, Json::error_handler_t::replace);
  return Fail(
      ErrorCode::kInvalidArgument,
      fmt::format("writing: {}: the file has comments or is no JSON object, and stays as it "
                  "is; add to its configurations:{}",
                  path, to_add));
}

Status WriteText(const std::string& path, const std::string& text) {
  std::ofstream out(path);
  out << text;
  out.close();
  if (!out) return FailErrno("writing: " + path, errno);
  return {};
}

}  // namespace

Result<VsCodeFiles> WriteVsCode(const VsCodeReplay& replay, const std::string& folder) {
  const fs::path root(folder);
  VsCodeFiles files;
  files.launch = (root / ".vscode/launch.json").string();
  files.script = (root / fmt::format(".vscode/deja-rank{}.sh", replay.rank)).string();
  files.name =
      fmt::format("Deja: rank {} of {}", replay.rank, fs::path(replay.trace).filename().string());
  std::error_code error;
  fs::create_directories(root / ".vscode", error);
  if (error) return FailErrno("making: " + (root / ".vscode").string(), error.value());
  DEJA_RETURN_IF_ERROR(WriteText(files.script, Script(replay, root)));
  fs::permissions(files.script, fs::perms::owner_all, error);
  std::vector<Json> own = {Configuration(replay, files, root)};
  if (IsPython(replay.program)) {
    files.python_name = files.name + " (Python)";
    files.python_first = fmt::format("deja replay {} --rank {} --debugpy {}", replay.trace,
                                     replay.rank, kDebugpyPort);
    own.push_back(PythonConfiguration(files.python_name));
  }
  DEJA_ASSIGN_OR_RETURN(Json launch, ReadLaunch(files.launch, own));
  Json kept = Json::array();
  for (const Json& other : launch["configurations"]) {
    const std::string name = other.is_object() ? other.value("name", "") : "";
    if (name.empty() || (name != files.name && name != files.python_name)) kept.push_back(other);
  }
  for (const Json& one : own) kept.push_back(one);
  launch["configurations"] = kept;
  DEJA_RETURN_IF_ERROR(
      WriteText(files.launch, launch.dump(2, ' ', false, Json::error_handler_t::replace) + "\n"));
  return files;
}

}  // namespace deja::cli
