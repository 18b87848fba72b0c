#include "cli/pager.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

namespace deja::cli {
namespace {

// Empty: none.
std::string ChosenPager() {
  const char* terminal = std::getenv("TERM");
  if (terminal == nullptr || std::string_view(terminal) == "dumb") return "";
  if (const char* chosen = std::getenv("PAGER"))
    return std::string_view(chosen) == "cat" ? "" : chosen;
  return access("/usr/bin/less", X_OK) == 0 ? "less" : "";
}

}  // namespace

Pager::Pager(bool is_wanted) {
  if (!is_wanted || isatty(STDOUT_FILENO) != 1) return;
  const std::string program = ChosenPager();
  int ends[2];
  if (program.empty() || pipe2(ends, O_CLOEXEC) != 0) return;
  pid_ = fork();
  if (pid_ == 0) {
    dup2(ends[0], STDIN_FILENO);
    // Colours pass, one page needs no key, and what was shown stays.
    setenv("LESS", "FRX", 0);
    execl("/bin/sh", "sh", "-c", program.c_str(), nullptr);
    _exit(127);
  }
  if (pid_ > 0) dup2(ends[1], STDOUT_FILENO);
  close(ends[0]);
  close(ends[1]);
  if (pid_ < 0) {
    pid_ = 0;
    return;
  }
  // The keys are the pager's.
  signal(SIGINT, SIG_IGN);
}

Pager::~Pager() {
  if (pid_ == 0) return;
  std::fflush(stdout);
  // The pager reads until all write ends are closed.
  const int nothing = open("/dev/null", O_WRONLY | O_CLOEXEC);
  if (nothing >= 0) {
    dup2(nothing, STDOUT_FILENO);
    close(nothing);
  }
  int status = 0;
  while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
}

}  // namespace deja::cli
