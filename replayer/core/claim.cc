#include "replayer/core/claim.h"

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

}  // namespace

int OwnPid() {
  return static_cast<int>(syscall(SYS_getpid));
}

bool ClaimRank(const std::string& scratch) {
  const std::string path = ClaimPath(scratch);
  for (int attempt = 0; attempt < 2; ++attempt) {
    const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd >= 0) {
      char text[16];
      const int n = snprintf(text, sizeof text, "%d", OwnPid());
      const bool ok = write(fd, text, static_cast<size_t>(n)) == n;
      close(fd);
      return ok;
    }
    const int holder = Holder(path);
    if (holder != 0 && syscall(SYS_kill, holder, 0) == 0) return false;
    if (holder != 0 && errno == EPERM) return false;
    unlink(path.c_str());
  }
  return false;
}

int ClaimHolder(const std::string& scratch) {
  return Holder(ClaimPath(scratch));
}

namespace {

void WriteHolder(const std::string& scratch, int pid) {
  const int fd = open(ClaimPath(scratch).c_str(), O_WRONLY | O_TRUNC | O_CLOEXEC);
  if (fd < 0) return;
  const std::string text = std::to_string(pid);
  [[maybe_unused]] const ssize_t n = write(fd, text.data(), text.size());
  close(fd);
}

}  // namespace

void HoldClaim(const std::string& scratch) {
  WriteHolder(scratch, OwnPid());
}

void GiveUpRank(const std::string& scratch) {
  WriteHolder(scratch, 1);  // which never goes away
}

}  // namespace deja::replayer
