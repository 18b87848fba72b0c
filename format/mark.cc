#include "format/mark.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

namespace deja::format {
namespace {

constexpr size_t kMaxReason = 200;
constexpr uint64_t kMaxMarks = 100000;

}  // namespace

std::string MarkPath(const std::string& trace_dir, uint64_t number) {
  return trace_dir + "/mark-" + std::to_string(number);
}

// Written under another name and linked, so that who sees it can read it.
Result<uint64_t> LeaveMark(const std::string& trace_dir, std::string_view reason) {
  const std::string draft = trace_dir + "/.mark-" + std::to_string(getpid());
  const int fd = open(draft.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0666);
  if (fd < 0) return FailErrno("cannot make " + draft, errno);
  reason = reason.substr(0, kMaxReason);
  const bool written =
      write(fd, reason.data(), reason.size()) == static_cast<ssize_t>(reason.size());
  int error = written ? 0 : errno;
  close(fd);
  uint64_t number = 1;
  while (error == 0 && number < kMaxMarks &&
         link(draft.c_str(), MarkPath(trace_dir, number).c_str()) != 0) {
    if (errno != EEXIST) error = errno;
    ++number;
  }
  unlink(draft.c_str());
  if (error != 0) return FailErrno("cannot leave a mark in " + trace_dir, error);
  if (number == kMaxMarks)
    return Fail(ErrorCode::kLimit, "there are too many marks in " + trace_dir);
  return number;
}

void RemoveMarks(const std::string& trace_dir) {
  uint64_t number = 1;
  while (unlink(MarkPath(trace_dir, number).c_str()) == 0) ++number;
}

std::string ReadMark(const std::string& trace_dir, uint64_t number) {
  const int fd = open(MarkPath(trace_dir, number).c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  if (fd < 0) return {};
  char text[kMaxReason];
  const ssize_t got = read(fd, text, sizeof text);
  close(fd);
  return got > 0 ? std::string(text, static_cast<size_t>(got)) : std::string();
}

}  // namespace deja::format
