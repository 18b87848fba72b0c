#include "cli/replay/debugger/child_debugging.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/interruption.h"
#include "cli/replay/watch/child_outputs.h"
#include "common/env_vars.h"
#include "common/process/proc_stat.h"
#include "format/scratch/scratch_names.h"

namespace deja::cli {
namespace {

using nlohmann::json;

constexpr int kTickMs = 20;

// A FIFO whose other end comes and goes.
Result<int> MakeFifo(const std::string& path) {
  const int fd =
      mkfifo(path.c_str(), 0600) == 0 ? open(path.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC) : -1;
  if (fd < 0) return FailErrno("making the FIFO " + path, errno);
  return fd;
}

class Session {
 public:
  Session(const ReplayTarget& rank, const ReplayOptions& options, int requests, int answers)
      : rank_(rank), options_(options), requests_(requests), answers_(answers) {}

  // gdb's status.
  int Run(pid_t gdb) {
    gdb_ = gdb;
    while (!HasGdbEnded()) {
      pollfd wait{requests_, POLLIN, 0};
      if (poll(&wait, 1, kTickMs) <= 0) continue;
      char piece[4096];
      const ssize_t n = read(requests_, piece, sizeof piece);
      if (n > 0) asked_.append(piece, static_cast<size_t>(n));
      for (size_t end = 0; (end = asked_.find('\n')) != std::string::npos;) {
        const std::string folder = asked_.substr(0, end);
        asked_.erase(0, end + 1);
        Answer(Start(folder));
      }
    }
    EndDescendants(0);
    return status_;
  }

 private:
  bool HasGdbEnded() {
    if (!ended_ && Interruption::EndOfSession() != 0) {
      AwaitGdb(gdb_, status_);
      ended_ = true;
    }
    if (!ended_) ended_ = waitpid(gdb_, &status_, WNOHANG) == gdb_;
    return ended_;
  }

  void Answer(const json& answer) const {
    const std::string line = answer.dump(-1, ' ', false, json::error_handler_t::replace) + "\n";
    [[maybe_unused]] const ssize_t n = write(answers_, line.data(), line.size());
  }

  json Start(const std::string& folder) {
    EndDescendants(gdb_);
    outputs_.reset();
    auto outputs = ChildOutputs::Make(folder, false);
    if (!outputs) return {{"error", outputs.error().message}};
    outputs_ = std::move(*outputs);
    ReplayTarget target = rank_;
    target.scratch = folder;
    constexpr std::string_view kScratch = env::kScratch.prefix;
    for (std::string& entry : target.environment)
      if (entry.starts_with(kScratch)) entry = std::string(kScratch) + folder;
    ReplayOptions options = options_;
    options.outputs = outputs_->of_rank();
    options.own_group = true;
    options.quiet_stdin = true;
    const auto pid = StartReplay(target, options);
    if (!pid) return {{"error", pid.error().message}};
    return AwaitChild(*pid, folder);
  }

  // The child, once it waits for gdb.
  json AwaitChild(pid_t rank, const std::string& folder) {
    while (!HasGdbEnded()) {
      std::ifstream file(folder + format::kWaitsForDebugger);
      // The program can write there, too. A debugger is attached to processes of the replay alone.
      if (pid_t child = 0;
          file >> child && IsBelow(child, getpid()) && child != gdb_ && !IsBelow(child, gdb_))
        return {{"pid", child}};
      if (waitpid(rank, nullptr, WNOHANG) == rank)
        return {{"error", fmt::format("replaying: rank {}: it ended before its child {} began; "
                                      "replay without --gdb to see why",
                                      rank_.rank, options_.child)}};
      usleep(kTickMs * 1000);
    }
    return {{"error", "gdb has ended"}};
  }

  const ReplayTarget& rank_;
  const ReplayOptions& options_;
  const int requests_;
  const int answers_;
  pid_t gdb_ = 0;
  int status_ = 0;
  bool ended_ = false;
  std::string asked_;
  std::unique_ptr<ChildOutputs> outputs_;
};

// The child's program, for gdb; where it is not here, the rank's.
ReplayTarget ShownChild(const Replayed& replay) {
  const format::ProcessInfo& process = replay.child_reader->header().process;
  ReplayTarget shown = replay.target;
  shown.is_forked = false;
  std::error_code error;
  if (std::filesystem::is_regular_file(process.executable, error))
    shown.executable = process.executable;
  shown.argv.assign(process.argv.begin(), process.argv.end());
  return shown;
}

}  // namespace

Result<int> DebugChild(const Replayed& replay, const ReplayOptions& options,
                       const GdbOptions& gdb) {
  const ReplayTarget& rank = replay.target;
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  DEJA_ASSIGN_OR_RETURN(const int requests, MakeFifo(rank.scratch + "/requests"));
  DEJA_ASSIGN_OR_RETURN(const int answers, MakeFifo(rank.scratch + "/answers"));
  DEJA_ASSIGN_OR_RETURN(const pid_t pid, StartGdb(ShownChild(replay), gdb));
  const int status = Session(rank, options, requests, answers).Run(pid);
  close(requests);
  close(answers);
  return ExitOfGdb(status, gdb.debugger);
}

}  // namespace deja::cli
