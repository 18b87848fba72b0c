#include "cli/replay/fold/process_checkpoint.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <vector>

#include "cli/interruption.h"
#include "cli/replay/report/replay_report.h"
#include "cli/replay/start/replay_launch.h"
#include "format/scratch/scratch_names.h"

namespace deja::cli {
namespace {

namespace fs = std::filesystem;

constexpr char kCriu[] = "criu";
constexpr char kCudaCheckpoint[] = "cuda-checkpoint";

bool IsInstalled(const std::string& tool) {
  return FindInPath(tool) != tool;
}

struct ToolRun {
  int code = 0;
  std::string output;  // and errors
};

Result<ToolRun> RunTool(std::vector<std::string> words) {
  const std::string what = fmt::format("running {}", words[0]);
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return FailErrno(what, errno);
  std::vector<char*> argv;
  argv.reserve(words.size() + 1);
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  const pid_t pid = fork();
  if (pid < 0) return FailErrno(what, errno);
  if (pid == 0) {
    dup2(ends[1], STDOUT_FILENO);
    dup2(ends[1], STDERR_FILENO);
    execvp(argv[0], argv.data());
    _exit(127);
  }
  close(ends[1]);
  ToolRun run;
  char buffer[4096];
  for (ssize_t n = 0; (n = read(ends[0], buffer, sizeof buffer)) > 0;)
    run.output.append(buffer, static_cast<size_t>(n));
  close(ends[0]);
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  run.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return run;
}

// What a tool said last, in one line: what it repeats, once.
std::string LastWords(const std::string& output) {
  constexpr size_t kMost = 400;
  std::istringstream lines(output);
  std::string text;
  std::string before;
  for (std::string line; std::getline(lines, line); before = line)
    if (!line.empty() && line != before) text += (text.empty() ? "" : "; ") + line;
  if (text.size() > kMost) text = "… " + text.substr(text.size() - kMost);
  return text.empty() ? "nothing" : text;
}

// Root, or what CRIU needs since 3.16.
bool MayUseCriu() {
  constexpr uint64_t kSysAdmin = 1ull << 21;
  constexpr uint64_t kCheckpointRestore = 1ull << 40;
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.rfind("CapEff:", 0) == 0)
      return (std::stoull(line.substr(7), nullptr, 16) & (kSysAdmin | kCheckpointRestore)) != 0;
  return geteuid() == 0;
}

std::string Kernel() {
  utsname name{};
  return uname(&name) == 0 ? name.release : "unknown";
}

// It has a device of NVIDIA's open.
bool UsesGpu(pid_t pid) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(fmt::format("/proc/{}/fd", pid), error)) {
    const std::string target = fs::read_symlink(entry.path(), error).string();
    if (target.rfind("/dev/nvidia", 0) == 0) return true;
  }
  return false;
}

void EndAndReap(pid_t pid) {
  kill(pid, SIGKILL);
  while (waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
  }
}

// The GPU's state goes into the process's memory.
Status TakeFromGpu(pid_t pid) {
  if (!IsInstalled(kCudaCheckpoint))
    return Fail(ErrorCode::kNotFound,
                "checkpointing the process: it uses a GPU, and cuda-checkpoint is not in PATH; "
                "install it (github.com/NVIDIA/cuda-checkpoint, for drivers from 550 on)");
  DEJA_ASSIGN_OR_RETURN(const ToolRun run,
                        RunTool({kCudaCheckpoint, "--toggle", "--pid", std::to_string(pid)}));
  if (run.code == 0) return {};
  return Fail(ErrorCode::kIo,
              fmt::format("checkpointing the process: cuda-checkpoint ended with {}: {}", run.code,
                          LastWords(run.output)));
}

}  // namespace

Status CheckProcessCheckpoints() {
  const std::string what = "checkpointing the process: ";
  if (!IsInstalled(kCriu))
    return Fail(ErrorCode::kNotFound,
                what + "criu is not in PATH; install your system's package criu");
  if (!MayUseCriu())
    return Fail(ErrorCode::kInvalidArgument, what +
                                                 "criu needs more rights; run it as root, or with "
                                                 "the capability CAP_CHECKPOINT_RESTORE");
  DEJA_ASSIGN_OR_RETURN(const ToolRun run, RunTool({kCriu, "check"}));
  if (run.code == 0) return {};
  return Fail(ErrorCode::kInvalidArgument,
              fmt::format("{}`criu check` ends with {} on Linux {}: {}", what, run.code, Kernel(),
                          LastWords(run.output)));
}

Result<std::string> WaitUntilHeld(pid_t pid, const std::string& scratch) {
  constexpr useconds_t kStepUs = 20000;
  for (;;) {
    const ReplayReport report = ReadReport(scratch);
    if (const auto* held = FindLine<HeldLine>(report.lines)) return held->text;
    int status = 0;
    if (Interruption::IsOver()) kill(pid, SIGKILL);
    if (waitpid(pid, &status, WNOHANG) == pid)
      return Fail(ErrorCode::kNotFound,
                  fmt::format("checkpointing the process: the replay ended ({} {}) before that "
                              "place; replay without --process-checkpoint to see why",
                              WIFEXITED(status) ? "exit" : "signal",
                              WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status)));
    usleep(kStepUs);
  }
}

Status DumpProcess(pid_t pid, const std::string& folder) {
  if (UsesGpu(pid)) {
    if (Status taken = TakeFromGpu(pid); !taken) {
      EndAndReap(pid);
      return taken;
    }
  }
  const auto run = RunTool({kCriu, "dump", "--tree", std::to_string(pid), "--images-dir", folder,
                            "--log-file", "dump.log", "--shell-job"});
  EndAndReap(pid);  // criu has ended it if all went well
  if (!run) return tl::unexpected(run.error());
  if (run->code == 0) return {};
  std::ifstream log(folder + "/dump.log");
  const std::string text{std::istreambuf_iterator<char>(log), {}};
  return Fail(ErrorCode::kIo,
              fmt::format("checkpointing the process: criu dump ended with {}: {}; see {}/dump.log",
                          run->code, LastWords(text.empty() ? run->output : text), folder));
}

std::string RestoreText(pid_t pid, const std::string& folder, const std::string& scratch) {
  return fmt::format(
      "to go on from there: criu restore --images-dir {0} --shell-job --restore-detached && touch "
      "{1}{3} (process {2}; with memory on a GPU, cuda-checkpoint --toggle --pid {2} in between); "
      "its results: {1}{4}",
      folder, scratch, pid, format::kGoOnFile, format::kReportFile);
}

}  // namespace deja::cli
