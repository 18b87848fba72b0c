#include "replayer/process/claim.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace deja::replayer {
namespace {

std::string ClaimPath(const std::string& scratch) {
  return scratch + "/claim";
}

// Process that holds the claim; 0: none.
int Holder(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return 0;
  char text[16] = {};
  const ssize_t n = read(fd, text, sizeof text - 1);
  close(fd);
  return n > 0 ? atoi(text) : 0;
}

// A file of the calling process's own that names the holder; empty: it cannot be written. The claim
// is never seen half written, or another process would take it for one whose process is gone.
std::string WriteOwn(const std::string& scratch, int holder) {
  std::string path = ClaimPath(scratch) + "." + std::to_string(OwnPid());
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (fd < 0) return {};
  const std::string text = std::to_string(holder);
  const bool ok = write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  close(fd);
  return ok ? path : std::string();
}

void PutHolder(const std::string& scratch, int holder) {
  const std::string own = WriteOwn(scratch, holder);
  if (!own.empty()) rename(own.c_str(), ClaimPath(scratch).c_str());
}

}  // namespace

int OwnPid() {
  return static_cast<int>(syscall(SYS_getpid));
}

bool ClaimRank(const std::string& scratch, bool is_in_debugger) {
  const std::string path = ClaimPath(scratch);
  const int holder = Holder(path);
  if (holder != 0) {
    if (!is_in_debugger) return false;
    if (syscall(SYS_kill, holder, 0) == 0 || errno == EPERM) return false;
    unlink(path.c_str());
  }
  const std::string own = WriteOwn(scratch, OwnPid());
  if (own.empty()) return false;
  const bool is_first = link(own.c_str(), path.c_str()) == 0;
  unlink(own.c_str());
  return is_first;
}

int ClaimHolder(const std::string& scratch) {
  return Holder(ClaimPath(scratch));
}

void HoldClaim(const std::string& scratch) {
  PutHolder(scratch, OwnPid());
}

void GiveUpRank(const std::string& scratch) {
  PutHolder(scratch, 1);  // which never goes away
}

}  // namespace deja::replayer
