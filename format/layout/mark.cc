#include "format/layout/mark.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>

namespace deja::format {
namespace {

constexpr size_t kMaxReason = 200;
constexpr uint64_t kMaxMarks = 100000;
constexpr std::string_view kMark = "/mark-";

// `dir` + `name` + `number`, put together without an allocation.
class Name {
 public:
  Name(std::string_view dir, std::string_view name, uint64_t number) {
    if (dir.size() + name.size() + 24 > sizeof text_) return;
    char* at = std::copy(dir.begin(), dir.end(), text_);
    at = std::copy(name.begin(), name.end(), at);
    *std::to_chars(at, text_ + sizeof text_ - 1, number).ptr = '\0';
  }
  [[nodiscard]] const char* c_str() const { return text_; }

 private:
  char text_[4200] = {};  // empty: too long
};

// Written under another name and linked, so that who sees it can read it. 0, or what went wrong;
// `number` becomes the mark's, or kMaxMarks.
int Leave(std::string_view trace_dir, std::string_view reason, uint64_t& number) {
  const Name draft(trace_dir, "/.mark-", static_cast<uint64_t>(syscall(SYS_gettid)));
  const int fd = open(draft.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd < 0) return errno;
  reason = reason.substr(0, kMaxReason);
  const bool written =
      write(fd, reason.data(), reason.size()) == static_cast<ssize_t>(reason.size());
  int error = written ? 0 : errno;
  close(fd);
  while (error == 0 && number < kMaxMarks &&
         link(draft.c_str(), Name(trace_dir, kMark, number).c_str()) != 0) {
    if (errno != EEXIST) error = errno;
    ++number;
  }
  unlink(draft.c_str());
  return error;
}

}  // namespace

std::string MarkPath(const std::string& trace_dir, uint64_t number) {
  return trace_dir + std::string(kMark) + std::to_string(number);
}

Result<uint64_t> LeaveMark(const std::string& trace_dir, std::string_view reason) {
  uint64_t number = 1;
  const int error = Leave(trace_dir, reason, number);
  if (error != 0) return FailErrno("marking " + trace_dir, error);
  if (number == kMaxMarks)
    return Fail(ErrorCode::kLimit, "marking " + trace_dir + ": it has too many marks");
  return number;
}

void LeaveMarkIfNoneIsNew(const char* trace_dir, const char* reason) {
  constexpr time_t kRecent = 10;
  uint64_t number = 1;
  struct stat facts {};
  while (number < kMaxMarks && stat(Name(trace_dir, kMark, number).c_str(), &facts) == 0) ++number;
  if (number > 1 && time(nullptr) - facts.st_mtime < kRecent) return;
  (void)Leave(trace_dir, reason, number);
}

void RemoveMarks(const std::string& trace_dir) {
  uint64_t number = 1;
  while (unlink(MarkPath(trace_dir, number).c_str()) == 0) ++number;
}

std::string ReadMark(const std::string& trace_dir, uint64_t number) {
  const int fd =
      open(MarkPath(trace_dir, number).c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (fd < 0) return {};
  char text[kMaxReason];
  const ssize_t got = read(fd, text, sizeof text);
  close(fd);
  return got > 0 ? std::string(text, static_cast<size_t>(got)) : std::string();
}

}  // namespace deja::format
