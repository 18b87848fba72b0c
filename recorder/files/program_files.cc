#include "recorder/files/program_files.h"

#define XXH_INLINE_ALL
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>
#include <xxhash.h>

#include <climits>
#include <cstring>
#include <span>

#include "preload/files/absolute_path.h"
#include "recorder/events/mapped_memory.h"
#include "recorder/files/folder_list.h"
#include "recorder/files/input_files.h"

namespace deja::recorder {
namespace {

constexpr std::string_view kCache = "/__pycache__/";
// Some 20,000 packages.
constexpr size_t kMostPackageBytes = 1 << 20;

// The source of a compiled module: "a/__pycache__/b.cpython-311.pyc" is of "a/b.py". Empty: it has
// none.
std::string_view SourceOf(std::string_view path, std::span<char> buffer) {
  const size_t cache = path.rfind(kCache);
  if (cache == std::string_view::npos || !path.ends_with(".pyc")) return {};
  const std::string_view folder = path.substr(0, cache + 1);
  std::string_view name = path.substr(cache + kCache.size());
  name = name.substr(0, name.find('.'));
  size_t size = 0;
  for (const std::string_view part : {folder, name, std::string_view(".py\0", 4)}) {
    if (size + part.size() > buffer.size()) return {};
    std::memcpy(buffer.data() + size, part.data(), part.size());
    size += part.size();
  }
  return {buffer.data(), size - 1};
}

// ".../site-packages", as far as `path` is below one.
std::string_view PackageFolderOf(std::string_view path) {
  for (const std::string_view name : {"/site-packages/", "/dist-packages/"})
    if (const size_t at = path.rfind(name); at != std::string_view::npos)
      return path.substr(0, at + name.size() - 1);
  return {};
}

bool IsPackage(std::string_view name) {
  return name.ends_with(".dist-info") || name.ends_with(".egg-info");
}

}  // namespace

bool ProgramFiles::IsModule(std::string_view path) {
  return path.ends_with(".py") || path.ends_with(".pyc");
}

void ProgramFiles::Opened(Recording& rec, InputFiles& files, std::string_view path,
                          const struct stat& info) {
  if (const std::string_view folder = PackageFolderOf(path); !folder.empty())
    Packages(rec, files, folder);
  FileNews what;
  what.program = true;
  char buffer[PATH_MAX];
  struct stat of_source {};
  const std::string_view source = SourceOf(path, buffer);
  if (!source.empty() && stat(source.data(), &of_source) == 0)
    files.Know(rec, source, of_source, false, what);
  else
    files.Know(rec, path, info, false, what);
}

void ProgramFiles::Packages(Recording& rec, InputFiles& files, std::string_view path) {
  const uint64_t key = XXH3_64bits(path.data(), path.size()) | 1;
  for (std::atomic<uint64_t>& slot : folders_) {
    uint64_t there = 0;
    if (slot.compare_exchange_strong(there, key)) break;
    if (there == key || &slot == &folders_.back()) return;
  }
  char name[PATH_MAX];
  if (path.size() >= sizeof name) return;
  std::memcpy(name, path.data(), path.size());
  name[path.size()] = '\0';
  const int fd = open(name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  struct stat info {};
  auto* list = fd < 0 ? nullptr : static_cast<char*>(MapZeroed(kMostPackageBytes));
  FileNews what;
  what.program = true;
  size_t size = 0;
  if (list != nullptr && fstat(fd, &info) == 0 &&
      ListFolder(fd, {list, kMostPackageBytes}, size, IsPackage)) {
    what.entries = {list, size};
    files.Know(rec, path, info, false, what);
  }
  if (list != nullptr) munmap(list, kMostPackageBytes);
  if (fd >= 0) close(fd);
}

}  // namespace deja::recorder
