#include "replayer/files/overlay.h"

#include "common/os/folder_entries.h"
#include "common/runtime/errno_keeper.h"

#include <fcntl.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <set>
#include <vector>

#include "replayer/files/make_folders.h"

namespace deja::replayer {

using preload::FileUse;

namespace {

// The most entries of a folder that is moved as a whole. Above it, EXDEV makes `mv` and similar
// programs copy.
constexpr size_t kMaxMovedEntries = 10000;

// Last component of the folders in which listings are put together.
constexpr std::string_view kEntries = "/.~entries";

bool StartsWith(std::string_view text, std::string_view prefix) {
  return text.size() >= prefix.size() && text.substr(0, prefix.size()) == prefix &&
         (text.size() == prefix.size() || text[prefix.size()] == '/');
}

std::string ParentOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == 0 || slash == std::string::npos ? "/" : path.substr(0, slash);
}

// Removes empty, "." and ".." components of an absolute path.
std::string Normalise(std::string_view path) {
  std::vector<std::string_view> parts;
  for (size_t at = 0; at < path.size();) {
    const size_t next = std::min(path.find('/', at), path.size());
    const std::string_view part = path.substr(at, next - at);
    if (part == "..") {
      if (!parts.empty()) parts.pop_back();
    } else if (!part.empty() && part != ".") {
      parts.push_back(part);
    }
    at = next + 1;
  }
  std::string out;
  for (std::string_view part : parts) out.append("/").append(part);
  return out.empty() ? "/" : out;
}

bool Lstat(const std::string& path, struct stat& info) {
  return lstat(path.c_str(), &info) == 0;
}

bool IsFolder(const std::string& path) {
  struct stat info;
  return Lstat(path, info) && S_ISDIR(info.st_mode);
}

std::vector<std::string> Entries(const std::string& folder) {
  std::vector<std::string> names;
  ForEachEntry(folder.c_str(), [&](const char* entry, int) {
    const std::string_view name = entry;
    if (name != "." && name != "..") names.emplace_back(name);
    return true;
  });
  return names;
}

void CopyAttributes(int in, int out) {
  char names[4096];
  char value[4096];
  const ssize_t size = flistxattr(in, names, sizeof names);
  for (ssize_t at = 0; at < size; at += static_cast<ssize_t>(std::strlen(names + at)) + 1) {
    const ssize_t n = fgetxattr(in, names + at, value, sizeof value);
    if (n >= 0) fsetxattr(out, names + at, value, static_cast<size_t>(n), 0);
  }
}

bool CopyBytes(int in, int out) {
  for (;;) {
    const ssize_t n = sendfile(out, in, nullptr, 1 << 30);
    if (n == 0) return true;
    if (n < 0) return false;
  }
}

// What is neither file, folder nor link cannot be copied; writing to it goes through (or is refused
// by the kernel's fence).
bool IsSpecial(const struct stat& info) {
  return !S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode) && !S_ISLNK(info.st_mode);
}

const char* Keep(const std::string& path, std::span<char> buffer) {
  if (path.size() + 1 > buffer.size()) {
    errno = ENAMETOOLONG;
    return nullptr;
  }
  std::memcpy(buffer.data(), path.c_str(), path.size() + 1);
  return buffer.data();
}

}  // namespace

void Overlay::Open(std::string scratch) {
  scratch_ = std::move(scratch);
  overlay_ = scratch_ + "/overlay";
  whiteout_ = scratch_ + "/whiteout";
  merged_ = scratch_ + "/merged";
}

// Folders of ours stand for the ones that the program knows.
std::string Overlay::Outside(std::string path, bool& renamed) const {
  for (const std::string& root : {overlay_, merged_}) {
    if (!StartsWith(path, root)) continue;
    renamed = true;
    path = path.substr(root.size());
    const size_t entries = path.find(kEntries);
    if (entries != std::string::npos) path.erase(entries, kEntries.size());
    return path.empty() ? "/" : path;
  }
  return path;
}

size_t Overlay::Unmap(char* path, size_t size) const {
  const std::string_view given(path, size);
  if (!is_open() || (!StartsWith(given, overlay_) && !StartsWith(given, merged_))) return size;
  bool renamed = false;
  const std::string told = Outside(std::string(given), renamed);
  std::copy(told.begin(), told.end(), path);  // a path with a length, and no end
  return told.size();
}

bool Overlay::IsOwn(std::string_view place) const {
  return is_open() && StartsWith(place, overlay_);
}

std::string Overlay::Logical(int dirfd, const char* path, bool& renamed) const {
  std::string absolute;
  if (path[0] != '/') {
    char link[64];
    if (dirfd == AT_FDCWD)
      std::strcpy(link, "/proc/self/cwd");
    else
      snprintf(link, sizeof link, "/proc/self/fd/%d", dirfd);
    char target[PATH_MAX];
    const ssize_t n = readlink(link, target, sizeof target);
    if (n <= 0) return {};
    absolute = Outside(std::string(target, static_cast<size_t>(n)), renamed) + "/";
  }
  absolute += path;
  const std::string clean = Outside(Normalise(absolute), renamed);
  // Links among the folders on the way: as far as they really exist.
  std::string parent = ParentOf(clean);
  std::string rest = clean.substr(parent.size() == 1 ? 0 : parent.size());
  while (parent.size() > 1) {
    char real[PATH_MAX];
    if (realpath(parent.c_str(), real) != nullptr)
      return std::strcmp(real, "/") == 0 ? rest : Outside(real + rest, renamed);
    const std::string above = ParentOf(parent);
    rest = parent.substr(above.size() == 1 ? 0 : above.size()) + rest;
    parent = above;
  }
  return rest;
}

std::string Overlay::Marker(const std::string& logical) const {
  return whiteout_ + logical + ".~hidden";
}

bool Overlay::IsHidden(const std::string& logical) const {
  if (access(whiteout_.c_str(), F_OK) != 0) return false;
  for (size_t at = 1; at != std::string::npos;) {
    at = logical.find('/', at + 1);
    if (access(Marker(logical.substr(0, at)).c_str(), F_OK) == 0) return true;
  }
  return false;
}

Overlay::Place Overlay::Find(const std::string& logical) const {
  Place place;
  place.logical = logical;
  place.copy = Copy(logical);
  struct stat info;
  place.has_copy = Lstat(place.copy, info);
  place.has_real = !IsHidden(logical) && Lstat(logical, info);
  return place;
}

const char* Overlay::Map(int dirfd, const char* path, FileUse use, std::span<char> buffer) {
  if (path == nullptr || path[0] == '\0') return path;
  const bool reads = use == FileUse::kRead || use == FileUse::kLook;
  if (reads && access(overlay_.c_str(), F_OK) != 0 && access(whiteout_.c_str(), F_OK) != 0)
    return path;  // nothing was written yet
  bool renamed = false;
  std::string logical = Logical(dirfd, path, renamed);
  if (logical.empty()) return path;  // a bad descriptor: the call itself will say so
  if (StartsWith(logical, scratch_) || StartsWith(logical, "/proc") ||
      StartsWith(logical, "/sys") ||
      (StartsWith(logical, "/dev") && !StartsWith(logical, "/dev/shm")))
    return path;
  // A name below a folder of ours would lead to the listed entry in it.
  if (renamed) path = Keep(logical, buffer);
  if (path == nullptr) return nullptr;
  Place place = Find(logical);
  struct stat info;
  const bool follows = use != FileUse::kRemove && use != FileUse::kMakeDir && !reads;
  if (follows && !place.has_copy && place.has_real && Lstat(logical, info) &&
      S_ISLNK(info.st_mode)) {
    char real[PATH_MAX];
    if (realpath(logical.c_str(), real) != nullptr) place = Find(real);
  }
  if (place.has_real && !place.has_copy && Lstat(place.logical, info) && IsSpecial(info))
    return path;
  if (use == FileUse::kLook && place.has_copy && place.has_real && IsFolder(place.copy))
    return path;
  if (reads) return Read(use == FileUse::kRead ? Target(place) : place, path, buffer);
  std::lock_guard<std::mutex> lock(mutex_);
  bool ready = false;
  switch (use) {
    case FileUse::kWrite:
    case FileUse::kMetadata:
    case FileUse::kCreate:
      ready = PrepareWrite(place, use);
      break;
    case FileUse::kRemove:
      ready = PrepareRemove(place);
      break;
    case FileUse::kMakeDir:
      ready = PrepareMakeDir(place);
      break;
    default:
      break;
  }
  return ready ? Keep(place.copy, buffer) : nullptr;
}

std::string Overlay::FollowOwnLinks(int dirfd, const char* path) const {
  if (!is_open() || path == nullptr || path[0] == '\0' || access(overlay_.c_str(), F_OK) != 0)
    return {};
  bool renamed = false;
  std::string end = Logical(dirfd, path, renamed);
  constexpr int kMostLinks = 40;  // as the kernel
  int links = 0;
  struct stat info;
  for (; !end.empty() && links < kMostLinks && Lstat(Copy(end), info) && S_ISLNK(info.st_mode);
       ++links) {
    char text[PATH_MAX];
    const ssize_t n = readlink(Copy(end).c_str(), text, sizeof text);
    if (n <= 0) return {};
    const std::string_view target(text, static_cast<size_t>(n));
    end = Normalise(target[0] == '/' ? std::string(target)
                                     : ParentOf(end) + "/" + std::string(target));
  }
  return links == 0 || links == kMostLinks ? std::string() : end;
}

// What an open of `place` reads, if that is a link to something that the program has changed.
Overlay::Place Overlay::Target(const Place& place) const {
  struct stat info;
  char real[PATH_MAX];
  if (place.has_copy || !place.has_real || !Lstat(place.logical, info) || !S_ISLNK(info.st_mode) ||
      realpath(place.logical.c_str(), real) == nullptr)
    return place;
  const Place target = Find(real);
  return target.has_copy || !target.has_real ? target : place;
}

const char* Overlay::Read(const Place& place, const char* path, std::span<char> buffer) {
  if (place.has_copy && place.has_real && IsFolder(place.copy) && IsFolder(place.logical)) {
    std::lock_guard<std::mutex> lock(mutex_);
    return Keep(Merged(place), buffer);
  }
  if (place.has_copy) return Keep(place.copy, buffer);
  if (place.has_real) return path;
  if (IsHidden(place.logical)) {
    errno = ENOENT;
    return nullptr;
  }
  // Not there, unless the last component is a link that the program's own files satisfy.
  return path;
}

bool Overlay::MakeParents(const Place& place) {
  const std::string parent = ParentOf(place.logical);
  const Place above = Find(parent);
  if (!above.has_copy && !above.has_real) {
    errno = ENOENT;
    return false;
  }
  if (!above.has_copy && access(parent.c_str(), W_OK) != 0) {
    if (errno == EROFS) errno = EACCES;
    return false;
  }
  return MakeFolders(above.copy);
}

bool Overlay::CopyUp(const std::string& real, const std::string& copy) {
  struct stat info;
  if (!Lstat(real, info)) return false;
  if (S_ISLNK(info.st_mode)) {
    char target[PATH_MAX];
    const ssize_t n = readlink(real.c_str(), target, sizeof target - 1);
    if (n < 0) return false;
    target[n] = '\0';
    return symlink(target, copy.c_str()) == 0;
  }
  const int in = open(real.c_str(), O_RDONLY | O_CLOEXEC);
  if (in < 0) return false;
  // Under another name first: a half-made copy must never be seen.
  const std::string partial = copy + ".~partial";
  const int out =
      open(partial.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, (info.st_mode & 0777) | 0200);
  bool ok = out >= 0 && CopyBytes(in, out) && rename(partial.c_str(), copy.c_str()) == 0;
  const ErrnoKeeper keep;
  if (out >= 0) {
    CopyAttributes(in, out);
    const timespec times[2] = {info.st_atim, info.st_mtim};
    futimens(out, times);
    fchmod(out, info.st_mode & 07777);
    close(out);
  }
  if (!ok && out >= 0) unlink(partial.c_str());
  close(in);
  return ok;
}

bool Overlay::PrepareWrite(const Place& place, FileUse use) {
  if (place.has_copy) return true;
  if (place.has_real) {
    if (IsFolder(place.logical)) return MakeFolders(place.copy);
    // A process that may change a file's mode need not be allowed to write it.
    if (use != FileUse::kMetadata && access(place.logical.c_str(), W_OK) != 0 && errno != EROFS)
      return false;
    const std::string parent = ParentOf(place.copy);
    return MakeFolders(parent) && CopyUp(place.logical, place.copy);
  }
  if (use != FileUse::kCreate) {
    errno = ENOENT;
    return false;
  }
  return MakeParents(place);
}

bool Overlay::Hide(const std::string& logical, Why why) {
  const std::string marker = Marker(logical);
  if (!MakeFolders(ParentOf(marker))) return false;
  const int fd = open(marker.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
  if (fd < 0) return false;
  const bool marked = ftruncate(fd, static_cast<off_t>(why)) == 0;
  close(fd);
  return marked;
}

bool Overlay::IsHiddenAsCreated(const std::string& path) const {
  if (access(whiteout_.c_str(), F_OK) != 0) return false;
  bool renamed = false;
  const std::string logical = Logical(AT_FDCWD, path.c_str(), renamed);
  bool hidden = false;
  struct stat info;
  if (Lstat(Copy(logical), info)) return false;
  for (size_t at = 1; at != std::string::npos && !logical.empty();) {
    at = logical.find('/', at + 1);
    if (!Lstat(Marker(logical.substr(0, at)), info)) continue;
    if (info.st_size != static_cast<off_t>(Why::kCreated)) return false;
    hidden = true;
  }
  return hidden;
}

void Overlay::HideCreated(const std::string& path) {
  bool renamed = false;
  const std::string logical = Logical(AT_FDCWD, path.c_str(), renamed);
  struct stat info;
  if (logical.size() <= 1 || renamed || StartsWith(logical, scratch_) || IsHidden(logical) ||
      !Lstat(logical, info) || S_ISCHR(info.st_mode) || S_ISBLK(info.st_mode))
    return;
  std::lock_guard<std::mutex> lock(mutex_);
  // With a copy of its folder a listing is put together, without it.
  if (MakeFolders(ParentOf(Copy(logical)))) Hide(logical, Why::kCreated);
}

std::string Overlay::SeedPlace(const std::string& path, std::string& logical) {
  bool renamed = false;
  logical = Logical(AT_FDCWD, path.c_str(), renamed);
  if (logical.size() <= 1 || renamed || StartsWith(logical, scratch_)) return {};
  struct stat info;
  std::string copy = Copy(logical);
  const bool is_hidden = IsHidden(logical) && !IsHiddenAsCreated(logical);
  return Lstat(copy, info) || is_hidden ? std::string() : copy;
}

void Overlay::SeedFifo(const std::string& path) {
  std::lock_guard<std::mutex> lock(mutex_);
  std::string logical;
  const std::string copy = SeedPlace(path, logical);
  // Another process of the rank may do the same.
  if (copy.empty() || !MakeFolders(ParentOf(copy)) || mkfifo(copy.c_str(), 0666) != 0) return;
  Hide(logical);
}

void Overlay::Seed(const std::string& path, const char* content) {
  std::lock_guard<std::mutex> lock(mutex_);
  std::string logical;
  const std::string copy = SeedPlace(path, logical);
  if (copy.empty()) return;
  if (content == nullptr) {
    MakeFolders(copy);
    return;
  }
  const bool is_empty = content[0] == '\0';
  if (is_empty && IsHidden(logical)) return;
  if (!MakeFolders(ParentOf(copy)) || (!is_empty && !CopyUp(content, copy))) return;
  Hide(logical, is_empty ? Why::kCreated : Why::kRemoved);
}

void Overlay::Replace(const std::string& path, const char* content) {
  std::lock_guard<std::mutex> lock(mutex_);
  bool renamed = false;
  const std::string logical = Logical(AT_FDCWD, path.c_str(), renamed);
  if (logical.size() <= 1 || renamed || StartsWith(logical, scratch_)) return;
  const std::string copy = Copy(logical);
  struct stat info;
  if (!Lstat(copy, info)) {
    if (MakeFolders(ParentOf(copy)) && CopyUp(content, copy)) Hide(logical);
    return;
  }
  if (!S_ISREG(info.st_mode)) return;
  // In place: descriptors that the program has open lead to the same file, as they did.
  const int in = open(content, O_RDONLY | O_CLOEXEC);
  const int out = open(copy.c_str(), O_WRONLY | O_TRUNC | O_CLOEXEC);
  if (in >= 0 && out >= 0) CopyBytes(in, out);
  if (in >= 0) close(in);
  if (out >= 0) close(out);
}

void Overlay::Remove(const std::string& path) {
  std::lock_guard<std::mutex> lock(mutex_);
  bool renamed = false;
  const std::string logical = Logical(AT_FDCWD, path.c_str(), renamed);
  if (logical.size() <= 1 || renamed || StartsWith(logical, scratch_)) return;
  unlink(Copy(logical).c_str());
  if (!IsHidden(logical)) Hide(logical);
}

// Afterwards the program sees only the copy under this name. The call may succeed or fail on the
// copy as it would have on the real file.
bool Overlay::PrepareRemove(const Place& place) {
  if (!place.has_real) {
    if (place.has_copy) return !IsHidden(place.logical) || Hide(place.logical);
    errno = ENOENT;
    return false;
  }
  if (access(ParentOf(place.logical).c_str(), W_OK) != 0 && errno != EROFS && !place.has_copy)
    return false;
  if (!MakeFolders(ParentOf(place.copy))) return false;
  if (IsFolder(place.logical)) {
    // Depth first would need a stack of its own: a list of names still to copy is enough.
    std::vector<std::string> pending{place.logical};
    for (size_t i = 0; i < pending.size(); ++i) {
      const Place here = Find(pending[i]);
      if (!here.has_real) continue;
      if (IsFolder(here.logical)) {
        if (!MakeFolders(here.copy)) return false;
        for (const std::string& name : Entries(here.logical))
          pending.push_back(here.logical + "/" + name);
      } else if (!here.has_copy && !CopyUp(here.logical, here.copy)) {
        return false;
      }
      if (pending.size() > kMaxMovedEntries) {
        errno = EXDEV;
        return false;
      }
    }
  } else if (!place.has_copy && !CopyUp(place.logical, place.copy)) {
    return false;
  }
  return Hide(place.logical);
}

bool Overlay::PrepareMakeDir(const Place& place) {
  if (place.has_copy || place.has_real) {
    errno = EEXIST;
    return false;
  }
  return MakeParents(place);
}

std::string Overlay::Merged(const Place& place) {
  // The entries have a folder of their own, so that a listing of a folder in this one is not among
  // them.
  std::string folder =
      merged_ + (place.logical == "/" ? "" : place.logical) + std::string(kEntries);
  MakeFolders(folder);
  // What is listed now; entries of an earlier listing that are gone are taken out.
  std::set<std::string> names;
  for (const std::string& name : Entries(place.copy)) names.insert(name);
  for (const std::string& name : Entries(place.logical))
    if (!IsHidden(place.logical + "/" + name)) names.insert(name);
  for (const std::string& old : Entries(folder)) {
    if (names.count(old) != 0) continue;
    const std::string entry = folder + "/" + old;
    if (unlink(entry.c_str()) != 0) rmdir(entry.c_str());
  }
  for (const std::string& name : names) {
    const std::string entry = folder + "/" + name;
    const Place source = Find(place.logical == "/" ? "/" + name : place.logical + "/" + name);
    struct stat info;
    if (!Lstat(source.has_copy ? source.copy : source.logical, info)) continue;
    if (S_ISDIR(info.st_mode)) {
      mkdir(entry.c_str(), 0777);
    } else if (S_ISLNK(info.st_mode)) {
      char target[PATH_MAX];
      const std::string& from = source.has_copy ? source.copy : source.logical;
      const ssize_t n = readlink(from.c_str(), target, sizeof target - 1);
      if (n < 0) continue;
      target[n] = '\0';
      [[maybe_unused]] const int ignored = symlink(target, entry.c_str());
    } else {
      const int fd = open(entry.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
      if (fd >= 0) close(fd);
    }
  }
  return folder;
}

}  // namespace deja::replayer
