#include "cli/replay/debugger/gdb_launch.h"

#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <string_view>

#include "cli/install_layout.h"
#include "cli/interruption.h"
#include "cli/output.h"
#include "cli/replay/start/fenced_start.h"
#include "cli/replay/watch/replay_processes.h"
#include "common/env_vars.h"

namespace deja::cli {
namespace {

// The number of the keeper's socket in what the debugger starts.
constexpr int kKeeperInGdb = 200;
constexpr const char* kStartFile = "/start";  // in the scratch folder (gdb/deja_gdb/session.py)
constexpr int kNotStarted = 127;

// gdb starts programs by a shell, and quotes little in their names.
Status CheckForShell(const ReplayTarget& target) {
  constexpr std::string_view kPlain =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_./-+=:,@% ";
  for (const std::string* path : {&target.executable, &target.scratch}) {
    const bool is_text = std::all_of(path->begin(), path->end(), [&](char c) {
      return static_cast<unsigned char>(c) >= 0x80 || kPlain.find(c) != std::string_view::npos;
    });
    if (!is_text)
      return Fail(ErrorCode::kInvalidArgument,
                  fmt::format("starting gdb: '{}': a shell would interpret characters of the path; "
                              "give a copy in a plain place (-- PATH, --scratch PATH)",
                              *path));
  }
  return {};
}

Status SaveStartForDebugger(const ReplayTarget& target) {
  DEJA_RETURN_IF_ERROR(CheckForShell(target));
  FencedStart start = StartOf(target);
  start.fence.keeper = kKeeperInGdb;
  return SaveStart(start, target.scratch + kStartFile);
}

// Runs a debugger, which leaves what it is started with to the programs that it starts.
Result<pid_t> StartDebugger(const ReplayTarget& target, std::vector<std::string> argv) {
  std::vector<char*> pointers;
  pointers.reserve(argv.size() + 1);
  for (std::string& word : argv) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  const pid_t pid = fork();
  if (pid < 0) return FailErrno(fmt::format("starting {}", argv[0]), errno);
  if (pid == 0) {
    setenv(env::kScratch.name, target.scratch.c_str(), 1);
    if (dup2(target.fence.keeper, kKeeperInGdb) != kKeeperInGdb) _exit(kNotStarted);
    execvp(pointers[0], pointers.data());
    _exit(kNotStarted);
  }
  return pid;
}

// Waits for it, and ends the processes that it has left.
int AwaitDebugger(pid_t pid) {
  // The terminal's signals are for the debugger.
  signal(SIGINT, SIG_IGN);
  signal(SIGQUIT, SIG_IGN);
  int status = 0;
  AwaitGdb(pid, status);
  EndDescendants(0);
  return status;
}

}  // namespace

Result<pid_t> StartGdb(const ReplayTarget& target, const GdbOptions& options) {
  DEJA_ASSIGN_OR_RETURN(const std::string script, FindGdbScript("deja_gdb/load.py"));
  DEJA_RETURN_IF_ERROR(SaveStartForDebugger(target));
  std::vector<std::string> argv = {options.debugger, "-q"};
  argv.insert(argv.end(), options.arguments.begin(), options.arguments.end());
  if (!options.interpreter.empty()) argv.push_back("--interpreter=" + options.interpreter);
  if (!options.commands.empty()) argv.emplace_back("-batch");
  argv.insert(argv.end(), {"-x", script});
  if (target.is_forked) argv.insert(argv.end(), {"-ex", "set follow-fork-mode child"});
  if (!options.first.empty()) argv.insert(argv.end(), {"-ex", options.first});
  for (const std::string& command : options.commands) argv.insert(argv.end(), {"-ex", command});
  argv.push_back(target.executable);
  return StartDebugger(target, std::move(argv));
}

void AwaitGdb(pid_t gdb, int& status) {
  constexpr useconds_t kStepUs = 20000;
  constexpr int kMostSteps = 250;  // for gdb to end its program
  int steps = 0;
  for (;;) {
    // This process is a subreaper: it also gets processes that others have left.
    int ended = 0;
    const pid_t pid = waitpid(-1, &ended, WNOHANG);
    if (pid == gdb) status = ended;
    if (pid == gdb || (pid < 0 && errno != EINTR)) return;
    if (pid > 0) continue;
    if (const int signal = Interruption::EndOfSession(); signal != 0) {
      if (steps == 0) kill(gdb, signal);
      if (++steps == kMostSteps) kill(gdb, SIGKILL);
    }
    usleep(kStepUs);
  }
}

Result<int> ExitOfGdb(int status, const std::string& debugger) {
  if (WIFEXITED(status) && WEXITSTATUS(status) == kNotStarted)
    return Fail(
        ErrorCode::kNotFound,
        fmt::format("starting: {}: it cannot be run; install it, or put it into PATH", debugger));
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

Result<int> RunGdb(const ReplayTarget& target, const GdbOptions& options) {
  prctl(PR_SET_CHILD_SUBREAPER, 1);  // of processes that gdb leaves
  DEJA_ASSIGN_OR_RETURN(const pid_t pid, StartGdb(target, options));
  return ExitOfGdb(AwaitDebugger(pid), options.debugger);
}

Result<int> RunGdbServer(const ReplayTarget& target, const std::string& address) {
  constexpr const char* kServer = "gdbserver";
  constexpr const char* kFromTheStart = "0";
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  DEJA_RETURN_IF_ERROR(SaveStartForDebugger(target));
  DEJA_ASSIGN_OR_RETURN(
      const pid_t pid, StartDebugger(target, {kServer, "--once", "--wrapper", OwnPath(), kRunFenced,
                                              target.scratch + kStartFile, target.scratch,
                                              kFromTheStart, "--", address, target.executable}));
  Diagnose(fmt::format("rank {}: gdbserver waits at {}; next: gdb {} -ex 'target remote {}'",
                       target.rank, address, target.executable, address));
  return ExitOfGdb(AwaitDebugger(pid), kServer);
}

}  // namespace deja::cli
