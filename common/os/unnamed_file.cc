#include "common/os/unnamed_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <string>

#include "common/os/file.h"
#include "common/os/own_descriptor.h"

namespace deja {
namespace {

constexpr char kUnnamed[] = "a temporary file";

int OpenUnnamedIn(const std::string& folder) {
  const int fd = open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (fd >= 0) return MoveUp(fd);
  // File systems without O_TMPFILE.
  std::string name = folder + "/deja-rows-XXXXXX";
  const int named = mkostemp(name.data(), O_CLOEXEC);
  if (named >= 0) unlink(name.c_str());
  return MoveUp(named);
}

}  // namespace

Result<std::unique_ptr<UnnamedFile>> UnnamedFile::Make(const std::string& folder) {
  const char* chosen = folder.empty() ? getenv("TMPDIR") : folder.c_str();
  const bool may_choose = folder.empty();
  int error = ENOENT;
  for (const char* in : {chosen, may_choose ? "/var/tmp" : "", may_choose ? "/tmp" : ""}) {
    if (in == nullptr || *in == '\0') continue;
    const int fd = OpenUnnamedIn(in);
    if (fd >= 0) return std::unique_ptr<UnnamedFile>(new UnnamedFile(fd));
    error = errno;
  }
  return FailErrno("making a temporary file", error);
}

UnnamedFile::~UnnamedFile() {
  close(fd_);
}

Status UnnamedFile::Append(std::span<const std::byte> bytes) {
  return WriteBoth(fd_, kUnnamed, size_, bytes, {});
}

Status UnnamedFile::ReadAt(uint64_t offset, std::span<std::byte> out) const {
  while (!out.empty()) {
    const ssize_t count = pread(fd_, out.data(), out.size(), static_cast<off_t>(offset));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return FailErrno(std::string("reading ") + kUnnamed, count < 0 ? errno : EIO);
    offset += static_cast<uint64_t>(count);
    out = out.subspan(static_cast<size_t>(count));
  }
  return {};
}

}  // namespace deja
