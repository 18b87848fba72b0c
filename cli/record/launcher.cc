#include "cli/record/launcher.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <utility>

#include "cli/output.h"
#include "cli/own_variables.h"
#include "common/env_vars.h"

extern char** environ;

namespace deja::cli {
namespace {

bool g_ignores_file_size = false;
struct sigaction g_file_size_before {};

using Clock = std::chrono::steady_clock;

// What ranks get to end by themselves after Ctrl-C, before Deja asks the user to press it again.
constexpr std::chrono::seconds kPatience{2};
constexpr int kForwardedSignals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2};

// "NAME=value" strings with replacement by name.
class Environment {
 public:
  Environment() {
    for (char** entry = environ; *entry != nullptr; ++entry) entries_.emplace_back(*entry);
  }
  // Where it is already, if it is: what the program sees keeps its order.
  void Set(const std::string& name, const std::string& value) {
    const auto is_it = [&](const std::string& entry) {
      return entry.size() > name.size() && entry[name.size()] == '=' &&
             entry.compare(0, name.size(), name) == 0;
    };
    const auto first = std::find_if(entries_.begin(), entries_.end(), is_it);
    if (first == entries_.end()) {
      entries_.push_back(name + "=" + value);
      return;
    }
    *first = name + "=" + value;
    entries_.erase(std::remove_if(first + 1, entries_.end(), is_it), entries_.end());
  }
  // Puts `value` in front of a list such as LD_PRELOAD.
  void Prepend(const std::string& name, const std::string& value) {
    const char* old = Get(name);
    std::string joined = value;
    if (old != nullptr && *old != '\0') joined += std::string(":") + old;
    Set(name, joined);
  }
  void PadOwn(const std::string& program) { PadOwnVariables(entries_, BytesToRealPath(program)); }
  std::vector<char*> Pointers() {
    std::vector<char*> pointers;
    for (std::string& entry : entries_) pointers.push_back(entry.data());
    pointers.push_back(nullptr);
    return pointers;
  }

 private:
  const char* Get(const std::string& name) {
    for (const std::string& entry : entries_)
      if (entry.size() > name.size() && entry[name.size()] == '=' &&
          entry.compare(0, name.size(), name) == 0)
        return entry.c_str() + name.size() + 1;
    return nullptr;
  }
  std::vector<std::string> entries_;
};

// A TCP port that is free now, for the rendezvous of the ranks.
int FreePort() {
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  int port = 0;
  if (fd >= 0 && bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0 &&
      getsockname(fd, reinterpret_cast<sockaddr*>(&address), &length) == 0)
    port = ntohs(address.sin_port);
  if (fd >= 0) close(fd);
  return port != 0 ? port : 29500;
}

class Job {
 public:
  explicit Job(const LaunchOptions& options) : options_(options) {}

  JobEnd Run() {
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    BlockSignals();
    if (StartAll()) Wait();
    ReapAll();
    sigprocmask(SIG_SETMASK, &old_mask_, nullptr);
    result_.exit_code = first_failure_ >= 0 ? first_failure_ : 0;
    return std::move(result_);
  }

 private:
  void BlockSignals() {
    sigemptyset(&signals_);
    sigaddset(&signals_, SIGCHLD);
    for (int signal : kForwardedSignals) sigaddset(&signals_, signal);
    if (options_.ranks > 0) sigaddset(&signals_, SIGTSTP);
    sigprocmask(SIG_BLOCK, &signals_, &old_mask_);
    // A caller that ignores SIGCHLD would keep us from learning how children end.
    signal(SIGCHLD, SIG_DFL);
  }

  bool StartAll() {
    int count = std::max(1, options_.ranks);
    port_ = FreePort();
    int old_personality = personality(0xffffffff);
    // Inherited over fork and exec; refused by some containers' seccomp filters.
    result_.fixed_addresses =
        options_.fixed_addresses && old_personality != -1 &&
        personality(static_cast<unsigned long>(old_personality) | ADDR_NO_RANDOMIZE) != -1;
    for (int rank = 0; rank < count; ++rank) {
      pid_t pid = StartOne(rank);
      if (pid < 0) {
        Terminate(SIGKILL);
        break;
      }
      running_.push_back({pid, options_.ranks > 0 ? rank : -1});
    }
    if (result_.fixed_addresses) personality(static_cast<unsigned long>(old_personality));
    return !running_.empty();
  }

  Environment EnvironmentOf(int rank) {
    Environment env;
    for (const auto& [name, value] : options_.environment) env.Set(name, value);
    if (!options_.preload.empty()) env.Prepend("LD_PRELOAD", options_.preload);
    if (!options_.python.empty()) env.Set(env::kPython.name, options_.python);
    if (!options_.loopback_directory.empty())
      env.Prepend("LD_LIBRARY_PATH", options_.loopback_directory);
    if (options_.ranks == 0) return env;
    env.Set("RANK", std::to_string(rank));
    env.Set("WORLD_SIZE", std::to_string(options_.ranks));
    env.Set("LOCAL_RANK", std::to_string(rank));
    env.Set("LOCAL_WORLD_SIZE", std::to_string(options_.ranks));
    env.Set("MASTER_ADDR", "127.0.0.1");
    env.Set("MASTER_PORT", std::to_string(port_));
    env.Set("NCCL_COMM_ID", fmt::format("127.0.0.1:{}", port_));
    return env;
  }

  // The new process's id; -1 when the command cannot be started (the error is in the result).
  pid_t StartOne(int rank) {
    Environment env = EnvironmentOf(rank);
    std::vector<char*> envp = env.Pointers();
    std::vector<std::string> program = options_.program;
    std::vector<char*> argv;
    argv.reserve(program.size() + 1);
    for (std::string& argument : program) argv.push_back(argument.data());
    argv.push_back(nullptr);
    int report[2];
    if (pipe2(report, O_CLOEXEC) != 0) return StartFailed(errno);
    pid_t parent = getpid();
    pid_t pid = fork();
    if (pid == 0) {
      if (!options_.pid_variable.empty()) {
        env.Set(options_.pid_variable, std::to_string(getpid()));
      }
      if (options_.fixed_addresses) env.PadOwn(options_.program[0]);
      envp = env.Pointers();
      Child(rank, parent, argv.data(), envp.data(), report[1]);
    }
    int fork_error = errno;
    close(report[1]);
    int exec_error = 0;
    ssize_t got = pid < 0 ? 0 : read(report[0], &exec_error, sizeof exec_error);
    close(report[0]);
    if (pid < 0) return StartFailed(fork_error);
    if (got == sizeof exec_error) {
      waitpid(pid, nullptr, 0);
      return StartFailed(exec_error);
    }
    if (options_.ranks > 0) {
      if (group_ == 0) group_ = pid;
      setpgid(pid, group_);
    }
    return pid;
  }

  [[noreturn]] void Child(int rank, pid_t parent, char** argv, char** envp, int report) {
    if (options_.ranks > 0) {
      setpgid(0, group_);  // 0 for the first rank: its own id
      // A rank must not read the terminal from the background, and must not outlive us.
      if (isatty(STDIN_FILENO) == 1 || rank > 0) {
        // NOLINTNEXTLINE(android-cloexec-open): it may be standard input at once
        int null_fd = open("/dev/null", O_RDONLY);
        if (null_fd >= 0) dup2(null_fd, STDIN_FILENO);
        if (null_fd > STDIN_FILENO) close(null_fd);
      }
      prctl(PR_SET_PDEATHSIG, SIGTERM);
      if (getppid() != parent) _exit(143);
    }
    if (g_ignores_file_size) sigaction(SIGXFSZ, &g_file_size_before, nullptr);
    sigprocmask(SIG_SETMASK, &old_mask_, nullptr);
    execvpe(argv[0], argv, envp);
    int error = errno;
    [[maybe_unused]] ssize_t ignored = write(report, &error, sizeof error);
    _exit(127);
  }

  pid_t StartFailed(int error) {
    result_.start_error =
        fmt::format("starting: '{}': {}", options_.program[0], std::strerror(error));
    first_failure_ = error == ENOENT ? 127 : 126;
    return -1;
  }

  void Wait() {
    auto next_tick = Clock::now() + std::chrono::seconds(1);
    while (!running_.empty()) {
      auto now = Clock::now();
      if (now >= next_tick) {
        if (options_.tick) options_.tick();
        next_tick = now + std::chrono::seconds(1);
      }
      if (deadline_ != Clock::time_point{} && now >= deadline_) Escalate(now);
      if (interrupts_ == 1 && !said_ && now >= interrupted_ + kPatience) SayTheyGoOn();
      auto wake = deadline_ != Clock::time_point{} ? std::min(deadline_, next_tick) : next_tick;
      auto wait = std::chrono::duration_cast<std::chrono::nanoseconds>(wake - now).count();
      timespec timeout{wait / 1000000000, wait % 1000000000};
      siginfo_t info{};
      int signal = sigtimedwait(&signals_, &info, &timeout);
      if (signal == SIGCHLD) ReapAll();
      if (signal > 0 && signal != SIGCHLD) Forward(signal, info);
    }
  }

  void ReapAll() {
    int status = 0;
    for (pid_t pid = 0; (pid = waitpid(-1, &status, WNOHANG)) > 0;) {
      ProcessEnd end;
      end.pid = pid;
      if (WIFSIGNALED(status))
        end.signal = WTERMSIG(status);
      else
        end.exit_code = WEXITSTATUS(status);
      end.terminated = terminating_;
      auto it = std::find_if(running_.begin(), running_.end(),
                             [&](const Running& r) { return r.pid == pid; });
      bool direct = it != running_.end();
      if (direct) {
        end.rank = it->rank;
        running_.erase(it);
      }
      result_.ends.push_back(end);
      int code = end.signal != 0 ? 128 + end.signal : end.exit_code;
      if (!direct || code == 0) continue;
      if (first_failure_ < 0) first_failure_ = code;
      if (!terminating_ && !running_.empty())
        Trouble("a process failed: " + DescribeEnd(end.exit_code, end.signal));
      // The others usually notice by themselves; hangs must not last for ever.
      if (!running_.empty() && deadline_ == Clock::time_point{})
        deadline_ = Clock::now() + options_.grace;
    }
  }

  void Trouble(const std::string& what) {
    if (options_.on_trouble && !std::exchange(troubled_, true)) options_.on_trouble(what);
  }

  // Ctrl-C reaches a single command through its process group already; only what was sent to this
  // process alone is passed on. Ranks have a group of their own and get everything.
  void Forward(int signal, const siginfo_t& info) {
    if (signal == SIGTERM || signal == SIGINT || signal == SIGHUP || signal == SIGQUIT)
      Trouble("the job received a signal to end: " + DescribeEnd(-1, signal));
    if (options_.ranks == 0) {
      if (info.si_code <= 0)
        for (const Running& process : running_) kill(process.pid, signal);
      return;
    }
    if (signal == SIGTSTP) {
      kill(-group_, SIGTSTP);
      raise(SIGSTOP);
      kill(-group_, SIGCONT);
      return;
    }
    if (signal == SIGINT && interrupts_ == 0) interrupted_ = Clock::now();
    if (signal == SIGINT && ++interrupts_ > 1) signal = interrupts_ == 2 ? SIGTERM : SIGKILL;
    if (signal == SIGINT || signal == SIGTERM || signal == SIGHUP || signal == SIGQUIT)
      terminating_ = true;
    kill(-group_, signal);
  }

  // They may be saving what they have. Or they wait for each other and do not hear it, as Python in
  // a collective does.
  void SayTheyGoOn() {
    said_ = true;
    Diagnose(fmt::format("{} process{} not ended by Ctrl-C yet; press it again to terminate {}",
                         running_.size(), running_.size() == 1 ? " is" : "es are",
                         running_.size() == 1 ? "it" : "them"));
  }

  void Escalate(Clock::time_point now) {
    Terminate(terminating_ ? SIGKILL : SIGTERM);
    deadline_ = now + std::max(options_.grace, std::chrono::milliseconds(1000));
  }

  void Terminate(int signal) {
    terminating_ = true;
    if (group_ != 0) {
      kill(-group_, signal);
      kill(-group_, SIGCONT);  // a stopped process does not take SIGTERM
    }
  }

  struct Running {
    pid_t pid;
    int rank;
  };
  const LaunchOptions& options_;
  JobEnd result_;
  std::vector<Running> running_;
  sigset_t signals_{};
  sigset_t old_mask_{};
  pid_t group_ = 0;
  int port_ = 0;
  int first_failure_ = -1;
  int interrupts_ = 0;
  Clock::time_point interrupted_{};
  bool said_ = false;
  bool terminating_ = false;
  bool troubled_ = false;
  Clock::time_point deadline_{};
};

}  // namespace

void IgnoreFileSizeSignal() {
  if (g_ignores_file_size) return;
  struct sigaction ignore {};
  ignore.sa_handler = SIG_IGN;
  g_ignores_file_size = sigaction(SIGXFSZ, &ignore, &g_file_size_before) == 0;
}

JobEnd RunJob(const LaunchOptions& options) {
  return Job(options).Run();
}

std::string DescribeEnd(int exit_code, int signal) {
  if (signal == 0) return fmt::format("exit code {}", exit_code);
  const char* name = sigabbrev_np(signal);
  return name != nullptr ? fmt::format("SIG{}", name) : fmt::format("signal {}", signal);
}

}  // namespace deja::cli
