#include "cli/replay/start/replay_launch.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>

#include "cli/fence/read_rules.h"
#include "cli/install_layout.h"
#include "cli/own_variables.h"
#include "cli/programs/build_id.h"
#include "cli/programs/program_file.h"
#include "cli/replay/start/fenced_start.h"
#include "cli/replay/start/newer_nccl.h"
#include "common/os/cpu.h"
#include "common/own_variable_names.h"
#include "common/text/hex_text.h"
#include "format/reader/imported.h"

namespace deja::cli {
namespace {

namespace fs = std::filesystem;

bool StartsWith(std::string_view text, std::string_view prefix) {
  return text.substr(0, prefix.size()) == prefix;
}

Status CheckProgram(const format::TraceHeader& header, const ReplayOptions& options,
                    ReplayTarget& target) {
  DEJA_RETURN_IF_ERROR(CheckRecorded(header));
  const format::ProcessInfo& process = header.process;
  std::string path(process.executable);
  if (!options.program.empty()) path = FindInPath(options.program[0]);
  std::error_code error;
  if (path.empty() || !fs::is_regular_file(path, error))
    return Fail(ErrorCode::kNotFound,
                fmt::format("replaying: rank {}: its program '{}' is not here; give the place of "
                            "the same build: deja replay … -- PATH",
                            header.rank, path));
  if (access(path.c_str(), X_OK) != 0)
    return FailErrno(fmt::format("replaying: rank {}: running '{}'", header.rank, path), errno);
  target.executable = fs::canonical(path, error).string();
  if (const std::string why = WhyNoProgram(target.executable); !why.empty())
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("replaying: rank {}: '{}' {}, so the trace cannot be served to it; "
                            "give the recorded program: -- PATH",
                            header.rank, target.executable, why));
  const std::string here = BuildIdOf(target.executable);
  const std::string recorded(process.executable_build_id);
  target.build_id = here.empty()       ? "it has none"
                    : here == recorded ? "the recorded one"
                    : recorded.empty() ? "none was recorded: this is what lies at that path"
                                       : "NOT the recorded one";
  if (here == recorded && !recorded.empty()) return {};
  if (recorded.empty()) {
    if (!options.program.empty()) target.build_id += "; you have named the program";
    return {};  // the user is asked about another user's trace
  }
  const std::string what =
      fmt::format("'{}' is not the recorded program: its build id is {}, recorded {}",
                  target.executable, here.empty() ? "missing" : HexText(here), HexText(recorded));
  if (!options.force)
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("replaying: rank {}: {}; give the recorded build (-- PATH), or replay "
                            "this one with --edited (it is changed on purpose) or --force",
                            header.rank, what));
  if (!options.edited) target.notes.push_back(what);
  return {};
}

// What the trace holds masked: taken from here where the user says so.
void PassMasked(const format::TraceHeader& header, const ReplayOptions& options,
                ReplayTarget& target) {
  std::string left;
  for (std::string_view name : header.process.masked) {
    const bool wanted =
        std::find(options.pass_env.begin(), options.pass_env.end(), name) != options.pass_env.end();
    const char* value = wanted ? getenv(std::string(name).c_str()) : nullptr;
    const std::string prefix = std::string(name) + "=";
    auto entry = std::find_if(target.environment.begin(), target.environment.end(),
                              [&](const std::string& e) { return StartsWith(e, prefix); });
    if (value != nullptr && entry != target.environment.end()) {
      *entry = prefix + value;
      continue;
    }
    if (wanted) target.notes.push_back(fmt::format("--pass-env {}: it is not set here", name));
    left += fmt::format("{}{}", left.empty() ? "" : ", ", name);
  }
  if (!left.empty())
    target.notes.push_back(
        fmt::format("masked in the trace, so the program gets masks: {}; give this environment's "
                    "value with --pass-env NAME",
                    left));
}

// Libraries choose code by the CPU, and other code gives other bits.
void CompareCpu(const format::TraceHeader& header, ReplayTarget& target) {
  const std::string_view recorded = header.process.cpu_features;
  const std::string here = CpuFeatures();
  if (recorded.empty() || recorded == here) return;
  auto missing = [](std::string_view from, std::string_view in) {
    std::string names;
    while (!from.empty()) {
      const size_t end = std::min(from.find(' '), from.size());
      const std::string_view name = from.substr(0, end);
      if (fmt::format(" {} ", in).find(fmt::format(" {} ", name)) == std::string::npos)
        names += fmt::format(" {}", name);
      from.remove_prefix(std::min(end + 1, from.size()));
    }
    return names.empty() ? std::string(" nothing") : names;
  };
  target.notes.push_back(fmt::format(
      "this CPU is not the recorded one ({}; here: {}; missing here:{}; new here:{}): libraries "
      "that choose code by the CPU (the C library's mathematics, OpenBLAS, oneDNN, MKL) may give "
      "other bits; to prevent it, record with OPENBLAS_CORETYPE, ONEDNN_MAX_CPU_ISA, "
      "MKL_ENABLE_INSTRUCTIONS and GLIBC_TUNABLES set",
      header.process.cpu_model, CpuModel(), missing(recorded, here), missing(here, recorded)));
}

// Without what recording put there, with what replaying needs.
void FillEnvironment(const format::TraceHeader& header, const std::string& folder,
                     const std::string& libraries, const std::string& python,
                     const ReplayOptions& options, ReplayTarget& target) {
  std::string preload = libraries;
  // Where the program has it: what it sees keeps its order.
  std::optional<size_t> preload_at;
  for (std::string_view entry : header.process.environment) {
    if (entry.find('=') == std::string_view::npos) continue;
    if (IsHiddenVariable(entry)) continue;
    if (!StartsWith(entry, "LD_PRELOAD=")) {
      target.environment.emplace_back(entry);
      continue;
    }
    preload_at = target.environment.size();
    target.environment.emplace_back();
    std::string_view rest = entry.substr(strlen("LD_PRELOAD="));
    while (!rest.empty()) {
      const size_t end = std::min(rest.find_first_of(": "), rest.size());
      const std::string_view one = rest.substr(0, end);
      if (!one.empty() && one.find("libdeja_") == std::string_view::npos)
        preload += ":" + std::string(one);
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
  }
  preload = "LD_PRELOAD=" + preload;
  if (preload_at)
    target.environment[*preload_at] = preload;
  else
    target.environment.push_back(preload);
  target.environment.push_back(Entry(env::kPython, python));
  target.environment.push_back(Entry(env::kReplay, folder));
  target.environment.push_back(Entry(env::kScratch, target.scratch));
  target.environment.push_back(Entry(env::kClock, options.clock));
  if (options.allow_writes) target.environment.push_back(Entry(env::kAllowWrites));
  if (options.allow_network) target.environment.push_back(Entry(env::kAllowNetwork));
  if (options.may_pause) target.environment.push_back(Entry(env::kGdb));
  if (options.wait) target.environment.push_back(Entry(env::kWait));
  if (!options.fold.empty()) target.environment.push_back(Entry(env::kFold, options.fold));
  target.environment.push_back(
      Entry(env::kOnDivergence, options.warn_on_divergence ? "warn" : "stop"));
  if (const char* haste = getenv(env::kHaste.name); haste != nullptr)
    target.environment.push_back(Entry(env::kHaste, strtoull(haste, nullptr, 10)));
}

void FillDirectory(const format::TraceHeader& header, ReplayTarget& target) {
  target.working_directory = std::string(header.process.working_directory);
  std::error_code error;
  if (fs::is_directory(target.working_directory, error)) return;
  target.notes.push_back(
      fmt::format("the recorded working directory '{}' is not here; running in "
                  "the current one",
                  target.working_directory));
  target.working_directory = fs::current_path(error).string();
}

// Besides what the options have.
void FenceReads(const std::string& library, const std::string& python, ReplayTarget& target) {
  target.own_paths = ProgramPaths(target.executable, target.argv.front(), target.working_directory);
  target.own_paths.insert(target.own_paths.end(), target.fence.readable.begin(),
                          target.fence.readable.end());
  target.fence.fence_reads = true;
  std::vector<std::string>& readable = target.fence.readable;
  readable = SystemPaths();
  readable.insert(readable.end(), target.own_paths.begin(), target.own_paths.end());
  readable.push_back(fs::path(library).parent_path().string());
  readable.push_back(python);
  target.environment.push_back(Entry(env::kFencedReads));
}

}  // namespace

Status CheckRecorded(const format::TraceHeader& header) {
  if (!format::IsImported(header.producer)) return {};
  return Fail(ErrorCode::kInvalidArgument,
              fmt::format("replaying: rank {}: the trace was imported from dumps, which hold "
                          "neither inputs nor results to replay; record the job with deja record",
                          header.rank));
}

std::string FindInPath(const std::string& name) {
  if (name.find('/') != std::string::npos) return name;
  const char* path = getenv("PATH");
  std::string_view rest = path != nullptr ? path : "/usr/bin:/bin";
  while (!rest.empty()) {
    const size_t colon = std::min(rest.find(':'), rest.size());
    std::string candidate = std::string(rest.substr(0, colon)) + "/" + name;
    if (access(candidate.c_str(), X_OK) == 0) return candidate;
    rest.remove_prefix(std::min(colon + 1, rest.size()));
  }
  return name;
}

Result<ReplayTarget> PrepareReplay(const format::RankReader& reader, const std::string& folder,
                                   const std::string& scratch, const ReplayOptions& options) {
  const format::TraceHeader& header = reader.header();
  ReplayTarget target;
  target.rank = header.rank;
  target.scratch = scratch;
  DEJA_RETURN_IF_ERROR(CheckProgram(header, options, target));
  DEJA_ASSIGN_OR_RETURN(const std::string library, FindLibrary("libdeja_replay.so"));
  DEJA_ASSIGN_OR_RETURN(const std::string python, FindPythonDirectory());
  for (std::string_view argument : header.process.argv) target.argv.emplace_back(argument);
  if (options.program.size() > 1) target.argv = options.program;
  if (target.argv.empty()) target.argv.push_back(target.executable);
  DEJA_ASSIGN_OR_RETURN(const std::string newer, MakeNewerNccl(reader, scratch));
  FillEnvironment(header, folder, newer.empty() ? library : library + ":" + newer, python, options,
                  target);
  PassMasked(header, options, target);
  CompareCpu(header, target);
  FillDirectory(header, target);
  if (header.process.umask != 0) target.umask = static_cast<int>(header.process.umask) - 1;
  target.inherited = header.process.inherited;
  target.fence = options.fence;
  target.fence.allow_writes = options.allow_writes;
  target.fence.allow_network = options.allow_network;
  target.fence.writable.insert(target.fence.writable.begin(), scratch);
  if (options.is_foreign) FenceReads(library, python, target);
  return target;
}

FencedStart StartOf(const ReplayTarget& target) {
  return {target.executable, target.argv,      target.environment, target.working_directory,
          target.umask,      target.inherited, target.fence,       target.listener};
}

Result<pid_t> StartReplay(const ReplayTarget& target, const ReplayOptions& options) {
  const PreparedStart start(StartOf(target));
  int report[2];
  if (pipe2(report, O_CLOEXEC) != 0) return FailErrno("starting the replay", errno);
  // Out of the way of the descriptors that the program inherits.
  if (const int end = fcntl(report[1], F_DUPFD_CLOEXEC, kInheritedPlaces); end >= 0) {
    close(report[1]);
    report[1] = end;
  }
  const pid_t pid = fork();
  if (pid < 0) return FailErrno("starting the replay", errno);
  if (pid == 0) {
    int ok = options.own_group ? setpgid(0, 0) : 0;
    if (options.program_output_to_stderr) ok = dup2(STDERR_FILENO, STDOUT_FILENO);
    for (const int fd : {STDOUT_FILENO, STDERR_FILENO})
      if (options.outputs) ok = dup2((*options.outputs)[fd == STDOUT_FILENO ? 0 : 1], fd);
    if (options.quiet_stdin) {
      // NOLINTNEXTLINE(android-cloexec-open): it may be standard input at once
      const int null_fd = open("/dev/null", O_RDONLY);
      if (null_fd >= 0) ok = dup2(null_fd, STDIN_FILENO);
      if (null_fd > STDIN_FILENO) close(null_fd);
    }
    (void)ok;
    const int error = start.Become();
    [[maybe_unused]] const ssize_t ignored = write(report[1], &error, sizeof error);
    _exit(127);
  }
  close(report[1]);
  int error = 0;
  const ssize_t n = read(report[0], &error, sizeof error);
  close(report[0]);
  if (n == sizeof error) {
    waitpid(pid, nullptr, 0);
    return FailErrno(
        fmt::format("replaying: rank {}: running '{}'", target.rank, target.executable), error);
  }
  return pid;
}

}  // namespace deja::cli
