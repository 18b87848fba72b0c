#include "replayer/report/report.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "common/runtime/errno_keeper.h"
#include "common/text/plain_text.h"
#include "format/scratch/scratch_names.h"
#include "preload/process/guard.h"

namespace deja::replayer {

void Report::Open(std::string_view scratch) {
  static constexpr std::string_view kName = format::kReportFile;
  if (scratch.size() + kName.size() + 1 > sizeof path_) return;
  std::memcpy(path_, scratch.data(), scratch.size());
  std::memcpy(path_ + scratch.size(), kName.data(), kName.size() + 1);
}

void Report::SetChild(std::string_view name) {
  const size_t size = std::min(name.size(), sizeof child_ - 1);
  std::memcpy(child_, name.data(), size);
  child_[size] = '\0';
}

void Report::Append(format::JsonLine& line) const {
  const ErrnoKeeper keep;
  if (child_[0] != '\0') line.Add(format::report::kChildField, child_);
  const std::string_view text = line.Finish();
  // The kernel directly: the C library's functions may be hooked, and are not for handlers.
  const preload::Guard guard;
  const long fd =
      syscall(SYS_openat, AT_FDCWD, path_, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (fd >= 0) {
    [[maybe_unused]] const long written = syscall(SYS_write, fd, text.data(), text.size());
    syscall(SYS_close, fd);
  }
}

void Say(std::string_view message) {
  const ErrnoKeeper keep;
  static constexpr std::string_view kPrefix = "deja: ";
  std::string plain;
  if (!IsPlainText(message)) message = plain = PlainText(message);
  const iovec parts[] = {{const_cast<char*>(kPrefix.data()), kPrefix.size()},
                         {const_cast<char*>(message.data()), message.size()},
                         {const_cast<char*>("\n"), 1}};
  [[maybe_unused]] const long written = syscall(SYS_writev, 2, parts, 3);
}

}  // namespace deja::replayer
