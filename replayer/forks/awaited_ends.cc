#include "replayer/forks/awaited_ends.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "replayer/process/claim.h"

namespace deja::replayer {
namespace {

constexpr char kAwaited[] = "/awaited";
constexpr char kMadeAll[] = "/made-all";
constexpr char kExits[] = "/exits";
constexpr char kLive[] = "/live";

std::string PathOf(const std::string& scratch, const char* what, int pid) {
  return scratch + what + "/" + std::to_string(pid);
}

// Returns the path.
std::string Put(const std::string& scratch, const char* what, int pid) {
  mkdir((scratch + what).c_str(), 0777);
  std::string path = PathOf(scratch, what, pid);
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
  if (fd >= 0) close(fd);
  return path;
}

// The calling process says so, or takes it back.
void Mark(const std::string& scratch, const char* what, bool is_so) {
  if (is_so)
    Put(scratch, what, OwnPid());
  else
    unlink(PathOf(scratch, what, OwnPid()).c_str());
}

bool IsThere(const std::string& scratch, const char* what, int pid) {
  return access(PathOf(scratch, what, pid).c_str(), F_OK) == 0;
}

}  // namespace

AwaitedEnd::AwaitedEnd(const std::string& scratch, int pid) : path_(Put(scratch, kAwaited, pid)) {}

// Its number may be that of another process next.
AwaitedEnd::~AwaitedEnd() {
  unlink(path_.c_str());
}

bool IsEndAwaited(const std::string& scratch, int pid) {
  return IsThere(scratch, kAwaited, pid);
}

bool HasChildEnded(int pid) {
  siginfo_t info{};
  return waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
         info.si_pid != 0;
}

void SayAllMade(const std::string& scratch, bool is_made) {
  Mark(scratch, kMadeAll, is_made);
}

bool HasMadeAll(const std::string& scratch, int pid) {
  return IsThere(scratch, kMadeAll, pid);
}

void SayExits(const std::string& scratch, bool exits) {
  Mark(scratch, kExits, exits);
}

bool HasExited(const std::string& scratch, int pid) {
  return IsThere(scratch, kExits, pid);
}

void SayRunsLive(const std::string& scratch, bool runs_live) {
  Mark(scratch, kLive, runs_live);
}

bool RunsLive(const std::string& scratch, int pid) {
  return IsThere(scratch, kLive, pid);
}

}  // namespace deja::replayer
