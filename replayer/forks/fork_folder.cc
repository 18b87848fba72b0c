#include "replayer/forks/fork_folder.h"

#include <fcntl.h>
#include <ftw.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstring>

namespace deja::replayer {
namespace {

constexpr uint64_t kMaxBytes = 64 << 20;
constexpr uint64_t kMaxFiles = 2000;
constexpr int kDescriptors = 8;

std::string FolderOf(const std::string& scratch, uint64_t number) {
  return scratch + kForkFolders + "/" + std::to_string(number);
}

// nftw hands nothing on to its callback.
struct Copy {
  std::string from;
  std::string to;
  std::string skipped;
  uint64_t bytes = 0;
  uint64_t files = 0;
  std::string problem;
};
Copy* g_copy = nullptr;

bool CopyBytes(const char* from, const char* to, const struct stat& info) {
  const int in = open(from, O_RDONLY | O_CLOEXEC);
  if (in < 0) return false;
  const int out = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  bool ok = out >= 0;
  char buffer[1 << 16];
  ssize_t n = 0;
  while (ok && (n = read(in, buffer, sizeof buffer)) > 0)
    ok = write(out, buffer, static_cast<size_t>(n)) == n;
  const timespec times[] = {info.st_atim, info.st_mtim};
  ok = ok && n == 0 && fchmod(out, info.st_mode & 07777) == 0 && futimens(out, times) == 0;
  if (out >= 0) close(out);
  close(in);
  return ok;
}

bool CopyLink(const char* from, const char* to) {
  char target[PATH_MAX];
  const ssize_t n = readlink(from, target, sizeof target - 1);
  if (n < 0) return false;
  target[n] = '\0';
  return symlink(target, to) == 0;
}

int CopyOne(const char* path, const struct stat* info, int, FTW*) {
  Copy& copy = *g_copy;
  if (std::strncmp(path, copy.skipped.c_str(), copy.skipped.size()) == 0) return 0;
  const std::string to = copy.to + (path + copy.from.size());
  bool ok = true;
  if (S_ISDIR(info->st_mode)) {
    ok = mkdir(to.c_str(), 0700) == 0 && chmod(to.c_str(), (info->st_mode & 07777) | 0700) == 0;
  } else if (S_ISREG(info->st_mode)) {
    copy.bytes += static_cast<uint64_t>(info->st_size);
    if (++copy.files > kMaxFiles || copy.bytes > kMaxBytes) {
      copy.problem = "the program has written more than an image should hold";
      return 1;
    }
    ok = CopyBytes(path, to.c_str(), *info);
  } else if (S_ISLNK(info->st_mode)) {
    ok = CopyLink(path, to.c_str());
  } else {
    copy.problem = std::string(path) + " is no file that can be copied";
    return 1;
  }
  if (!ok) copy.problem = std::string("copying ") + path + ": " + strerrordesc_np(errno);
  return ok ? 0 : 1;
}

int RemoveOne(const char* path, const struct stat*, int, FTW*) {
  return remove(path);
}

}  // namespace

std::string KeepFolder(const std::string& scratch, uint64_t number) {
  RemoveKeptFolder(scratch, number);
  mkdir((scratch + kForkFolders).c_str(), 0700);
  Copy copy;
  copy.from = scratch;
  copy.to = FolderOf(scratch, number);
  copy.skipped = scratch + kForkFolders;
  g_copy = &copy;
  if (nftw(scratch.c_str(), CopyOne, kDescriptors, FTW_PHYS) != 0 && copy.problem.empty())
    copy.problem = std::string("reading ") + scratch + ": " + strerrordesc_np(errno);
  g_copy = nullptr;
  if (!copy.problem.empty()) RemoveKeptFolder(scratch, number);
  return copy.problem;
}

void RemoveKeptFolder(const std::string& scratch, uint64_t number) {
  nftw(FolderOf(scratch, number).c_str(), RemoveOne, kDescriptors, FTW_PHYS | FTW_DEPTH);
}

}  // namespace deja::replayer
