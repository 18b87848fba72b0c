#include "cli/replay/start/fenced_start.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/personality.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <string_view>
#include <utility>

#include "cli/exit_codes.h"
#include "cli/output.h"
#include "cli/own_variables.h"
#include "common/env_vars.h"

namespace deja::cli {
namespace {

std::vector<char*> Pointers(std::vector<std::string>& words) {
  std::vector<char*> pointers;
  pointers.reserve(words.size() + 1);
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  return pointers;
}

void SetVariable(std::vector<std::string>& environment, std::string_view name,
                 const std::string& value) {
  const std::string prefix = fmt::format("{}=", name);
  std::erase_if(environment, [&](const std::string& entry) {
    return entry.compare(0, prefix.size(), prefix) == 0;
  });
  environment.push_back(prefix + value);
}

// After the fence, which closes what is open here at exec. Allocates nothing.
void OpenInherited(uint64_t inherited) noexcept {
  if (inherited == 0) return;
  const int nothing = open("/dev/null", O_PATH | O_CLOEXEC);
  if (nothing < 0) return;
  for (int fd = STDERR_FILENO + 1; fd < kInheritedPlaces; ++fd) {
    if ((inherited >> fd & 1) == 0) continue;
    if (fd == nothing)
      fcntl(fd, F_SETFD, 0);
    else
      dup2(nothing, fd);
  }
}

FencedStart WithPadding(FencedStart start) {
  PadOwnVariables(start.environment, 0);
  return start;
}

}  // namespace

PreparedStart::PreparedStart(FencedStart start)
    : start_(WithPadding(std::move(start))),
      argv_(Pointers(start_.argv)),
      environment_(Pointers(start_.environment)),
      fence_(start_.fence) {}

int PreparedStart::Become() const noexcept {
  const int persona = personality(0xffffffff);
  if (persona != -1) personality(static_cast<unsigned long>(persona) | ADDR_NO_RANDOMIZE);
  if (start_.umask >= 0) umask(static_cast<mode_t>(start_.umask));
  [[maybe_unused]] const int ignored = chdir(start_.working_directory.c_str());
  if (!fence_.Enter()) return errno;
  OpenInherited(start_.inherited);
  if (start_.handed_down >= 0) fcntl(start_.handed_down, F_SETFD, 0);
  execve(start_.executable.c_str(), argv_.data(), environment_.data());
  return errno;
}

Status SaveStart(const FencedStart& start, const std::string& path) {
  std::ofstream out(path, std::ios::binary);
  const auto put = [&](std::string_view key, std::string_view value) {
    out << key << '=' << value << '\0';
  };
  put("executable", start.executable);
  for (const std::string& word : start.argv) put("argument", word);
  for (const std::string& entry : start.environment) put("variable", entry);
  put("directory", start.working_directory);
  put("umask", std::to_string(start.umask));
  put("inherited", std::to_string(start.inherited));
  for (const std::string& folder : start.fence.writable) put("writable", folder);
  for (const std::string& folder : start.fence.readable) put("readable", folder);
  put("fence_reads", start.fence.fence_reads ? "1" : "0");
  put("allow_writes", start.fence.allow_writes ? "1" : "0");
  put("allow_network", start.fence.allow_network ? "1" : "0");
  put("keeper", std::to_string(start.fence.keeper));
  out.close();
  if (!out) return FailErrno("writing: " + path, errno);
  return {};
}

Result<FencedStart> LoadStart(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return FailErrno("reading: " + path, errno);
  FencedStart start;
  const auto number = [](const std::string& text) { return std::atoi(text.c_str()); };
  const std::map<std::string_view, std::function<void(const std::string&)>> fields = {
      {"executable", [&](const auto& value) { start.executable = value; }},
      {"argument", [&](const auto& value) { start.argv.push_back(value); }},
      {"variable", [&](const auto& value) { start.environment.push_back(value); }},
      {"directory", [&](const auto& value) { start.working_directory = value; }},
      {"umask", [&](const auto& value) { start.umask = number(value); }},
      {"inherited",
       [&](const auto& value) { start.inherited = std::strtoull(value.c_str(), nullptr, 10); }},
      {"writable", [&](const auto& value) { start.fence.writable.push_back(value); }},
      {"readable", [&](const auto& value) { start.fence.readable.push_back(value); }},
      {"fence_reads", [&](const auto& value) { start.fence.fence_reads = value == "1"; }},
      {"allow_writes", [&](const auto& value) { start.fence.allow_writes = value == "1"; }},
      {"allow_network", [&](const auto& value) { start.fence.allow_network = value == "1"; }},
      {"keeper", [&](const auto& value) { start.fence.keeper = number(value); }},
  };
  for (std::string entry; std::getline(in, entry, '\0');) {
    const size_t equals = std::min(entry.find('='), entry.size());
    const auto field = fields.find(std::string_view(entry).substr(0, equals));
    if (field == fields.end() || equals == entry.size())
      return Fail(ErrorCode::kCorrupt, fmt::format("reading: {}: '{}' is no field", path, entry));
    field->second(entry.substr(equals + 1));
  }
  return start;
}

int RunFenced(int argc, char** argv) {
  constexpr int kFile = 2;
  constexpr int kFolder = 3;
  constexpr int kCheckpoint = 4;
  constexpr int kProgram = 5;
  if (argc <= kProgram) {
    Diagnose(
        fmt::format("{}: no program is given; only a replay's gdb runs this command", kRunFenced));
    return kExitUsage;
  }
  auto start = LoadStart(argv[kFile]);
  if (!start) return FailWith(start.error());
  SetVariable(start->environment, env::kScratch.name, argv[kFolder]);
  SetVariable(start->environment, env::kFromCheckpoint.name, argv[kCheckpoint]);
  if (!start->fence.writable.empty()) start->fence.writable.front() = argv[kFolder];
  if (argc > kProgram + 1) {
    start->argv.resize(1);
    start->argv.insert(start->argv.end(), argv + kProgram + 1, argv + argc);
  }
  const std::string program = start->executable;
  const PreparedStart prepared(std::move(*start));
  return FailWith(
      {ErrorCode::kIo, fmt::format("running '{}': {}", program, strerror(prepared.Become()))});
}

}  // namespace deja::cli
