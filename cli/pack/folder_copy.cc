#include "cli/pack/folder_copy.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <system_error>
#include <vector>

#include "cli/progress.h"
#include "common/os/file.h"

namespace deja::cli {
namespace {

namespace fs = std::filesystem;

// At a time, so that progress moves on within a large file.
constexpr uint64_t kPieceBytes = 4 << 20;

Status CopyFile(const fs::path& from, const fs::path& to,
                const std::function<void(uint64_t)>& on_bytes) {
  DEJA_ASSIGN_OR_RETURN(const auto in, OpenReadFile(from.string()));
  DEJA_ASSIGN_OR_RETURN(const auto out, CreateAppendFile(to.string()));
  std::vector<std::byte> buffer(static_cast<size_t>(std::min(in->size(), kPieceBytes)));
  for (uint64_t at = 0; at < in->size();) {
    DEJA_ASSIGN_OR_RETURN(const size_t got, in->ReadAt(at, buffer));
    if (got == 0) break;
    DEJA_RETURN_IF_ERROR(out->Append(std::span(buffer).first(got), {}));
    at += got;
    on_bytes(got);
  }
  return {};
}

Status MakeFolder(const fs::path& path) {
  std::error_code error;
  fs::create_directory(path, error);
  return error ? FailErrno("making: " + path.string(), error.value()) : Status();
}

}  // namespace

Status CopyFolder(const std::string& from, const std::string& to) {
  std::error_code error;
  std::vector<fs::path> folders;
  std::vector<fs::path> files;
  uint64_t total = 0;
  for (fs::recursive_directory_iterator at(from, error), end; !error && at != end;
       at.increment(error)) {
    const fs::path name = at->path().lexically_relative(from);
    if (at->is_directory(error)) {
      folders.push_back(name);
    } else if (at->is_regular_file(error)) {
      files.push_back(name);
      total += at->file_size(error);
    }
  }
  if (error) return FailErrno("reading: " + from, error.value());
  DEJA_RETURN_IF_ERROR(MakeFolder(to));
  for (const fs::path& name : folders) DEJA_RETURN_IF_ERROR(MakeFolder(fs::path(to) / name));
  Progress progress("writing " + to);
  uint64_t done = 0;
  for (const fs::path& name : files) {
    DEJA_RETURN_IF_ERROR(CopyFile(fs::path(from) / name, fs::path(to) / name, [&](uint64_t bytes) {
      done += bytes;
      progress.Update(done, total);
    }));
  }
  return {};
}

}  // namespace deja::cli
