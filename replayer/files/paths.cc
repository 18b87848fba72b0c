// The engine's part in opening and looking at files: which of the parts that know a file (files
// about the machine, files from the trace, the overlay) has the one that the program means.
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <string>

#include "preload/files/absolute_path.h"
#include "preload/meet/shared_moves.h"
#include "replayer/core/replayer_engine.h"
#include "replayer/files/machine_files.h"
#include "replayer/files/served_file.h"

namespace deja::replayer {

namespace {

// What a use that knows links is to those parts that do not.
preload::FileUse WithoutLinks(preload::FileUse use) {
  if (use == preload::FileUse::kLookAtLink) return preload::FileUse::kLook;
  return use == preload::FileUse::kResolve ? preload::FileUse::kRead : use;
}

}  // namespace

const char* ReplayerEngine::MapPath(int dirfd, const char* path, preload::FileUse use,
                                    std::span<char> buffer) {
  // A link in the overlay may lead to what is not there.
  const bool follows = use == preload::FileUse::kRead || use == preload::FileUse::kLook ||
                       use == preload::FileUse::kResolve || use == preload::FileUse::kWrite;
  const int saved_errno = errno;
  const std::string target = follows ? OwnLinkTarget(dirfd, path) : std::string();
  errno = saved_errno;
  if (target.empty()) return MapFollowed(dirfd, path, use, buffer);
  char end[PATH_MAX];
  if (target.size() >= std::min(sizeof end, buffer.size())) return path;
  std::memcpy(end, target.c_str(), target.size() + 1);
  const char* mapped = MapFollowed(AT_FDCWD, end, use, buffer);
  if (mapped != end) return mapped;
  std::memcpy(buffer.data(), end, target.size() + 1);
  return buffer.data();
}

const char* ReplayerEngine::MapFollowed(int dirfd, const char* path, preload::FileUse use,
                                        std::span<char> buffer) {
  if (session_ != nullptr) {
    const char* mapped = machine_files_.Map(*session_, session_->Thread(), live_pid_, dirfd, path,
                                            WithoutLinks(use), buffer);
    if (mapped != path) return mapped;
  }
  if (session_ != nullptr && session_->plan().reads_files())
    return MapInput(dirfd, path, use, buffer);
  if (allow_writes_) return path;
  return session_ == nullptr ? MapUnrecorded(dirfd, path, WithoutLinks(use), buffer)
                             : overlay_.Map(dirfd, path, WithoutLinks(use), buffer);
}

// In a child of which nothing is recorded, but whose working directory (or descriptor) may be a
// folder from the trace: the overlay knows it by the name that the program knows.
const char* ReplayerEngine::MapUnrecorded(int dirfd, const char* path, preload::FileUse use,
                                          std::span<char> buffer) {
  char name[PATH_MAX];
  size_t size = preload::AbsolutePath(dirfd, path, std::span(name).first(sizeof name - 1)).size();
  const std::string place(name, size);
  size = UnmapMachinePath(overlay_.scratch(), name, size);
  if (size == place.size()) return overlay_.Map(dirfd, path, use, buffer);
  name[size] = '\0';
  const int saved_errno = errno;
  const std::string folder = place.substr(0, place.rfind('/'));
  const bool reads = use == preload::FileUse::kRead || use == preload::FileUse::kLook;
  if (!reads && access(folder.c_str(), F_OK) == 0)
    overlay_.Seed(std::string(name, size).substr(0, std::string_view(name, size).rfind('/')),
                  nullptr);
  errno = saved_errno;
  const char* mapped = overlay_.Map(AT_FDCWD, name, use, buffer);
  return mapped == name ? path : mapped;
}

// Of a file from the trace; of a folder also by a descriptor, since one that is there is used as it
// is.
void ReplayerEngine::OnStat(const char* mapped, int fd, struct stat& info) {
  if (session_ == nullptr || !session_->plan().reads_files() || !InputServer::HasBytes(*session_) ||
      (mapped == nullptr && S_ISLNK(info.st_mode)))
    return;
  char name[PATH_MAX];
  const std::string_view place = mapped != nullptr ? preload::AbsolutePath(AT_FDCWD, mapped, name)
                                                   : preload::PathOfDescriptor(fd, name);
  const std::string served = session_->options().scratch + std::string(kMachineFolder);
  const bool is_made = place.substr(0, served.size()) == served;
  if (!is_made && (mapped != nullptr || !S_ISDIR(info.st_mode) || overlay_.IsOwn(place))) return;
  const size_t size = UnmapPath(name, place.size());
  input_files_.Describe(*session_, InputServer::NameOf(*session_, {name, size}, !is_made), info);
}

// The recording's name for what the program calls `path`. `inside`: that leads into the folder of
// files from the trace, which the overlay knows nothing of.
std::string ReplayerEngine::InputName(int dirfd, const char* path, bool& inside) {
  char name[PATH_MAX];
  const std::string_view real = preload::AbsolutePath(dirfd, path, name);
  const std::string served = session_->options().scratch + std::string(kMachineFolder);
  inside = real.substr(0, served.size()) == served;
  const size_t size = UnmapPath(name, real.size());
  return InputServer::NameOf(*session_, {name, size}, path[0] != '/');
}

// Where there may be files that the recorded run read. What is in the overlay is the program's own.
const char* ReplayerEngine::MapInput(int dirfd, const char* path, preload::FileUse use,
                                     std::span<char> buffer) {
  using preload::FileUse;
  const bool has_bytes = InputServer::HasBytes(*session_);
  const bool looks_at_link = use == FileUse::kLookAtLink;
  const bool opens = preload::Opens(use);
  const bool resolves = has_bytes && use == FileUse::kResolve;
  use = resolves ? FileUse::kLook : WithoutLinks(use);
  bool inside = false;
  std::string name = InputName(dirfd, path, inside);
  if (resolves) {
    std::string end = input_files_.Resolve(*session_, name);
    inside = inside || end != name;
    name = std::move(end);
  }
  if (inside && name.size() < buffer.size()) {
    std::memcpy(buffer.data(), name.c_str(), name.size() + 1);
    path = buffer.data();
  }
  char other[PATH_MAX];
  const auto map = [&]() -> const char* {
    if (allow_writes_) return path;
    const char* mapped = overlay_.Map(dirfd, path, use, other);
    if (mapped != other) return mapped;
    std::memcpy(buffer.data(), other, std::min(sizeof other, buffer.size()));
    return buffer.data();
  };
  if (opens && !allow_writes_ && !input_files_.Renew(*session_, overlay_, name)) return nullptr;
  if (use == FileUse::kRead || use == FileUse::kLook) {
    const std::string asked = path;
    const char* mapped = map();
    // In a folder that the run made there may be what another rank put there.
    if (mapped == nullptr && has_bytes && session_->plan().FindFile(name) != nullptr &&
        overlay_.IsHiddenAsCreated(name))
      mapped = path;
    if (mapped == nullptr || asked != mapped) return mapped;
    if (has_bytes && looks_at_link && input_files_.MapLink(*session_, name, buffer, mapped))
      return mapped;
    if (has_bytes) return input_files_.Map(*session_, name, use, mapped, buffer);
    if (use == FileUse::kRead)
      input_files_.Check(*session_, session_->Thread(), name, dirfd, mapped);
    return mapped;
  }
  if (has_bytes && !allow_writes_)
    input_files_.PrepareChange(*session_, overlay_, name);
  else if (!has_bytes && (use == FileUse::kWrite || use == FileUse::kCreate) &&
           IsOutside(dirfd, path))
    input_files_.Check(*session_, session_->Thread(), name, dirfd, path);
  return map();
}

// Whether `path` is what it was before the run: processes of the rank have not made, changed or
// removed it.
bool ReplayerEngine::IsOutside(int dirfd, const char* path) {
  if (allow_writes_) return true;
  char place[PATH_MAX];
  const int saved_errno = errno;
  const bool outside = overlay_.Map(dirfd, path, preload::FileUse::kRead, place) == path;
  errno = saved_errno;
  return outside;
}

// Where a link that the program has made itself leads; empty: it is none.
std::string ReplayerEngine::OwnLinkTarget(int dirfd, const char* path) {
  bool inside = false;
  std::string name;
  if (path != nullptr && path[0] != '\0' && session_ != nullptr && session_->plan().reads_files())
    name = InputName(dirfd, path, inside);
  return inside ? overlay_.FollowOwnLinks(AT_FDCWD, name.c_str())
                : overlay_.FollowOwnLinks(dirfd, path);
}

preload::FdObject* ReplayerEngine::OnOpened(int dirfd, const char* path, int fd, int flags) {
  struct stat info {};
  if (session_ == nullptr || (flags & O_PATH) != 0 || fstat(fd, &info) != 0 ||
      !S_ISREG(info.st_mode))
    return nullptr;
  bool inside = false;
  const std::string target = OwnLinkTarget(dirfd, path);
  const std::string name =
      target.empty() ? InputName(dirfd, path, inside) : InputName(AT_FDCWD, target.c_str(), inside);
  const uint64_t key = preload::PathKey(name);
  const uint32_t opens = preload::CountOpen(key);
  const bool is_known = session_->plan().reads_files() && input_files_.CountOpen(*session_, name);
  // What the program has written itself does not come from the trace.
  char real[PATH_MAX];
  const std::string_view place = preload::PathOfDescriptor(fd, real);
  if (!is_known && !overlay_.IsOwn(place)) return nullptr;
  if ((flags & O_ACCMODE) != O_RDONLY) return ServedOutput::Open(key, opens);
  const std::string served = session_->options().scratch + std::string(kMachineFolder);
  const bool is_from_trace = InputServer::HasBytes(*session_) && place.starts_with(served);
  return ServedFile::Open(name, key, opens, is_from_trace);
}

bool ReplayerEngine::FindEntries(DIR* stream, const char* path, ServedFolders::Folder& folder) {
  if (session_ == nullptr || !session_->plan().reads_files()) return false;
  if (path != nullptr) {
    bool inside = false;
    folder.name = InputName(AT_FDCWD, path, inside);
  } else {
    char real[PATH_MAX];
    const std::string_view place = preload::PathOfDescriptor(dirfd(stream), real);
    folder.name = InputServer::NameOf(*session_, {real, UnmapPath(real, place.size())}, true);
  }
  return input_files_.Entries(*session_, folder.name, folder.entries);
}

size_t ReplayerEngine::UnmapPath(char* path, size_t size) {
  return overlay_.Unmap(path, UnmapMachinePath(overlay_.scratch(), path, size));
}

}  // namespace deja::replayer
