#include "cli/replay_processes.h"

#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <fstream>

#include "cli/replay_verdict.h"

namespace deja::cli {
namespace {

// Processes that the programs have left behind come to this one (it is a subreaper): they have a
// moment to end by themselves.
void EndLeftovers() {
  constexpr int kSteps = 100;
  constexpr useconds_t kStepUs = 20000;
  for (int step = 0; step < 2 * kSteps; ++step) {
    pid_t pid = 0;
    while ((pid = waitpid(-1, nullptr, WNOHANG)) > 0) {
    }
    if (pid < 0) return;
    if (step >= kSteps) {
      std::ifstream list(fmt::format("/proc/self/task/{}/children", getpid()));
      for (pid_t left = 0; list >> left;) kill(left, SIGKILL);
    }
    usleep(kStepUs);
  }
}

// Ranks that compute together: once the replay of one has stopped before its end, others may wait
// for it for good. They have a moment to come to the same difference.
void WaitForTogether(std::vector<Replayed>& replays) {
  constexpr int kGraceMs = 5000;
  constexpr int kStepMs = 20;
  int grace = -1;
  for (size_t left = replays.size(); left != 0;) {
    bool moved = false;
    for (Replayed& replay : replays) {
      if (replay.ended || waitpid(replay.pid, &replay.status, WNOHANG) <= 0) continue;
      replay.ended = moved = true;
      --left;
      const bool stopped = WIFEXITED(replay.status) && HasStopped(replay.target.scratch);
      if (stopped && grace < 0) grace = kGraceMs;
    }
    if (moved) continue;
    usleep(kStepMs * 1000);
    if (grace < 0 || (grace -= kStepMs) > 0) continue;
    for (const Replayed& replay : replays)
      if (!replay.ended) kill(replay.pid, SIGKILL);
  }
}

}  // namespace

Status StartReplays(std::vector<Replayed>& replays, const ReplayOptions& options) {
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  for (Replayed& replay : replays) {
    auto pid = StartReplay(replay.target, options);
    if (!pid) {
      for (const Replayed& other : replays)
        if (other.pid != 0) kill(other.pid, SIGKILL);
      return tl::unexpected(pid.error());
    }
    replay.pid = *pid;
  }
  return {};
}

void WaitForReplays(std::vector<Replayed>& replays, bool together) {
  // Ctrl-C is for the programs; what they make of it is part of the verdict.
  signal(SIGINT, SIG_IGN);
  signal(SIGQUIT, SIG_IGN);
  if (together)
    WaitForTogether(replays);
  else
    for (Replayed& replay : replays)
      while (waitpid(replay.pid, &replay.status, 0) < 0 && errno == EINTR) {
      }
  EndLeftovers();
  signal(SIGINT, SIG_DFL);
  signal(SIGQUIT, SIG_DFL);
}

}  // namespace deja::cli
