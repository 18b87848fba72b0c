#include "format/trace/bundle_parts.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <memory>
#include <utility>

#include "common/os/file.h"

namespace deja::format {
namespace {

constexpr std::string_view kFirst = ".001";
constexpr size_t kBufferBytes = 1 << 20;
constexpr uint64_t kMostParts = 999;

std::string PartName(std::string_view whole, uint64_t number) {
  char ending[8];
  std::snprintf(ending, sizeof ending, ".%03u", static_cast<unsigned>(number));
  return std::string(whole) + ending;
}

// Copies from `offset` on, at most `size` bytes; says how many there were.
Result<uint64_t> CopyBytes(const ReadFile& from, uint64_t offset, uint64_t size, AppendFile& to) {
  std::vector<std::byte> buffer(kBufferBytes);
  uint64_t done = 0;
  while (done < size) {
    const auto room = std::span(buffer).first(std::min<uint64_t>(kBufferBytes, size - done));
    DEJA_ASSIGN_OR_RETURN(const size_t got, from.ReadAt(offset + done, room));
    if (got == 0) break;
    DEJA_RETURN_IF_ERROR(to.Append(room.first(got), {}));
    done += got;
  }
  return done;
}

}  // namespace

bool IsFirstPart(std::string_view path) {
  return path.size() > kFirst.size() && path.substr(path.size() - kFirst.size()) == kFirst;
}

std::vector<std::string> PartsOf(const std::string& first) {
  const std::string_view whole = std::string_view(first).substr(0, first.size() - kFirst.size());
  std::vector<std::string> parts = {first};
  struct stat info {};
  while (parts.size() < kMostParts) {
    std::string next = PartName(whole, parts.size() + 1);
    if (stat(next.c_str(), &info) != 0) break;
    parts.push_back(std::move(next));
  }
  return parts;
}

Result<std::vector<std::string>> SplitFile(const std::string& path, uint64_t part_bytes) {
  struct stat info {};
  if (stat(path.c_str(), &info) != 0) return FailErrno("looking at " + path, errno);
  const auto size = static_cast<uint64_t>(info.st_size);
  if (part_bytes == 0 || size / part_bytes >= kMostParts) {
    return Fail(ErrorCode::kLimit, "splitting: " + path + ": " + std::to_string(size) +
                                       " bytes make more than " + std::to_string(kMostParts) +
                                       " parts; allow larger ones");
  }
  DEJA_ASSIGN_OR_RETURN(const std::unique_ptr<ReadFile> whole, OpenReadFile(path));
  std::vector<std::string> parts;
  for (uint64_t offset = 0; offset < size || parts.empty(); offset += part_bytes) {
    parts.push_back(PartName(path, parts.size() + 1));
    DEJA_ASSIGN_OR_RETURN(const std::unique_ptr<AppendFile> part, CreateAppendFile(parts.back()));
    DEJA_RETURN_IF_ERROR(CopyBytes(*whole, offset, part_bytes, *part));
  }
  if (unlink(path.c_str()) != 0) return FailErrno("removing: " + path, errno);
  return parts;
}

Status JoinParts(const std::string& first, const std::string& out) {
  DEJA_ASSIGN_OR_RETURN(const std::unique_ptr<AppendFile> joined, CreateAppendFile(out));
  for (const std::string& name : PartsOf(first)) {
    DEJA_ASSIGN_OR_RETURN(const std::unique_ptr<ReadFile> part, OpenReadFile(name));
    DEJA_RETURN_IF_ERROR(CopyBytes(*part, 0, ~uint64_t{0}, *joined));
  }
  return {};
}

}  // namespace deja::format
