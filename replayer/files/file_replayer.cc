#include "replayer/files/file_replayer.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <climits>
#include <cstring>
#include <new>
#include <string>
#include <string_view>

#include "common/runtime/errno_keeper.h"
#include "format/scratch/scratch_names.h"
#include "preload/files/absolute_path.h"
#include "preload/meet/shared_moves.h"
#include "replayer/files/machine_files.h"
#include "replayer/files/served_file.h"

namespace deja::replayer {

namespace {

// The descriptor of this process that `path` names (/dev/stderr, /dev/fd/3); -1: none.
int OwnDescriptor(const char* path) {
  constexpr std::string_view kStandard[] = {"/dev/stdin", "/dev/stdout", "/dev/stderr"};
  const std::string_view name = path;
  for (int i = 0; i < 3; ++i)
    if (name == kStandard[i]) return i;
  for (const std::string_view folder : {"/dev/fd/", "/proc/self/fd/"}) {
    if (!name.starts_with(folder)) continue;
    int number = -1;
    const char* const end = name.data() + name.size();
    const auto [at, error] = std::from_chars(name.data() + folder.size(), end, number);
    return error == std::errc() && at == end ? number : -1;
  }
  return -1;
}

// What a use that knows links is to those parts that do not.
preload::FileUse WithoutLinks(preload::FileUse use) {
  if (use == preload::FileUse::kLookAtLink) return preload::FileUse::kLook;
  return use == preload::FileUse::kResolve ? preload::FileUse::kRead : use;
}

}  // namespace

void FileReplayer::Begin() {
  ServedFile::SetSession(replayer_.session);
  folders_.SetFind(
      [](DIR* stream, const char* path, ServedFolders::Folder& folder, void* files) {
        return static_cast<FileReplayer*>(files)->FindEntries(stream, path, folder);
      },
      [](const std::string& path, void* files) {
        auto* self = static_cast<FileReplayer*>(files);
        return self->input_files_.Inode(*self->replayer_.session, path);
      },
      this);
}

void FileReplayer::Abandon() {
  ServedFile::SetSession(nullptr);
}

void FileReplayer::OpenInChild() {
  // Threads that are not here may have held their locks.
  new (&overlay_) Overlay();
  new (&input_files_) InputServer();
  new (&folders_) ServedFolders();
  Open();
}

void FileReplayer::FillInherited() {
  if (InputServer::HasBytes(*replayer_.session)) input_files_.FillInherited(*replayer_.session);
}

void FileReplayer::HideCreatedFiles() {
  const std::string list = replayer_.scratch + format::kCreatedFile;
  LearnCreatedFiles();
  std::vector<format::CreatedName> names;
  for (const auto& [path, created] : input_files_.created()) {
    names.push_back({path, created.time_ns, created.was_there});
    if (!created.was_there) overlay_.HideCreated(path);
  }
  // For its children. Their recordings have the names that they found, and not who had made them. A
  // process that goes on as its child makes no later names in a replay.
  if (replayer_.session->options().is_before_fork) return;
  if (const Status written = format::WriteCreatedNames(list, names); !written)
    Say(written.error().message);
}

void FileReplayer::LearnCreatedFiles() {
  input_files_.LearnCreated(replayer_.session->plan(),
                            format::ReadCreatedNames(replayer_.scratch + format::kCreatedFile));
}

const char* FileReplayer::MapPath(int dirfd, const char* path, preload::FileUse use,
                                  std::span<char> buffer) {
  // A link in the overlay may lead to what is not there.
  const bool follows = use == preload::FileUse::kRead || use == preload::FileUse::kLook ||
                       use == preload::FileUse::kResolve || use == preload::FileUse::kWrite;
  std::string target;
  if (follows) {
    const ErrnoKeeper keep;
    target = OwnLinkTarget(dirfd, path);
  }
  if (target.empty()) return MapFollowed(dirfd, path, use, buffer);
  char end[PATH_MAX];
  if (target.size() >= std::min(sizeof end, buffer.size())) return path;
  std::memcpy(end, target.c_str(), target.size() + 1);
  const char* mapped = MapFollowed(AT_FDCWD, end, use, buffer);
  if (mapped != end) return mapped;
  std::memcpy(buffer.data(), end, target.size() + 1);
  return buffer.data();
}

const char* FileReplayer::MapFollowed(int dirfd, const char* path, preload::FileUse use,
                                      std::span<char> buffer) {
  if (replayer_.session != nullptr) {
    const char* mapped =
        machine_files_.Map(*replayer_.session, replayer_.session->Thread(), replayer_.live_pid,
                           dirfd, path, WithoutLinks(use), buffer);
    if (mapped != path) return mapped;
  }
  if (replayer_.session != nullptr && replayer_.session->plan().reads_files())
    return MapInput(dirfd, path, use, buffer);
  if (replayer_.allow_writes) return path;
  return replayer_.session == nullptr ? MapUnrecorded(dirfd, path, WithoutLinks(use), buffer)
                                      : overlay_.Map(dirfd, path, WithoutLinks(use), buffer);
}

// For a child that is not recorded, but whose working directory (or descriptor) may be a folder
// from the trace. The overlay knows the folder by the name that the program knows.
const char* FileReplayer::MapUnrecorded(int dirfd, const char* path, preload::FileUse use,
                                        std::span<char> buffer) {
  char name[PATH_MAX];
  size_t size = preload::AbsolutePath(dirfd, path, std::span(name).first(sizeof name - 1)).size();
  const std::string place(name, size);
  size = UnmapMachinePath(replayer_.scratch, name, size);
  if (size == place.size()) return overlay_.Map(dirfd, path, use, buffer);
  name[size] = '\0';
  const bool reads = use == preload::FileUse::kRead || use == preload::FileUse::kLook;
  if (!reads) {
    const ErrnoKeeper keep;
    const std::string folder = place.substr(0, place.rfind('/'));
    if (access(folder.c_str(), F_OK) == 0)
      overlay_.Seed(std::string(name, size).substr(0, std::string_view(name, size).rfind('/')),
                    nullptr);
  }
  const char* mapped = overlay_.Map(AT_FDCWD, name, use, buffer);
  return mapped == name ? path : mapped;
}

// Describes a file from the trace. A folder is also described by its descriptor, since one that
// exists is used as it is.
void FileReplayer::OnStat(const char* mapped, int fd, struct stat& info) {
  if (replayer_.session == nullptr || !replayer_.session->plan().reads_files() ||
      !InputServer::HasBytes(*replayer_.session) || (mapped == nullptr && S_ISLNK(info.st_mode)))
    return;
  char name[PATH_MAX];
  const std::string_view place = mapped != nullptr ? preload::AbsolutePath(AT_FDCWD, mapped, name)
                                                   : preload::PathOfDescriptor(fd, name);
  const std::string served = replayer_.session->options().scratch + std::string(kMachineFolder);
  const bool is_made = place.substr(0, served.size()) == served;
  const bool is_own = !is_made && overlay_.IsOwn(place);
  if (is_own) input_files_.TellApart(*replayer_.session, info);
  if (!is_made && (mapped != nullptr || !S_ISDIR(info.st_mode) || is_own)) return;
  const size_t size = UnmapPath(name, place.size());
  input_files_.Describe(*replayer_.session,
                        InputServer::NameOf(*replayer_.session, {name, size}, !is_made), info);
}

// The recording's name for what the program calls `path`. `inside`: that leads into the folder of
// files from the trace, which the overlay knows nothing of.
std::string FileReplayer::InputName(int dirfd, const char* path, bool& inside) {
  char name[PATH_MAX];
  const std::string_view real = preload::AbsolutePath(dirfd, path, name);
  const std::string served = replayer_.session->options().scratch + std::string(kMachineFolder);
  inside = real.substr(0, served.size()) == served;
  const size_t size = UnmapPath(name, real.size());
  return InputServer::NameOf(*replayer_.session, {name, size}, path[0] != '/');
}

// Where there may be files that the recorded run read.
const char* FileReplayer::MapInput(int dirfd, const char* path, preload::FileUse use,
                                   std::span<char> buffer) {
  std::string name;
  const char* mapped = MapNamed(dirfd, path, use, buffer, name);
  // An open that finds nothing counts as a look.
  const bool asks = use == preload::FileUse::kRead || use == preload::FileUse::kWrite;
  if (mapped == nullptr && asks && (errno == ENOENT || errno == ENOTDIR))
    input_files_.CountLook(*replayer_.session, name);
  return mapped;
}

// `name` becomes the recording's name for `path`. What is in the overlay is the program's own.
const char* FileReplayer::MapNamed(int dirfd, const char* path, preload::FileUse use,
                                   std::span<char> buffer, std::string& name) {
  using preload::FileUse;
  const bool has_bytes = InputServer::HasBytes(*replayer_.session);
  const bool looks_at_link = use == FileUse::kLookAtLink;
  const bool opens = preload::Opens(use);
  const bool resolves = has_bytes && use == FileUse::kResolve;
  use = resolves ? FileUse::kLook : WithoutLinks(use);
  bool inside = false;
  name = InputName(dirfd, path, inside);
  if (resolves) {
    std::string end = input_files_.Resolve(*replayer_.session, name);
    inside = inside || end != name;
    name = std::move(end);
  }
  if (inside && name.size() < buffer.size()) {
    std::memcpy(buffer.data(), name.c_str(), name.size() + 1);
    path = buffer.data();
  }
  char other[PATH_MAX];
  const auto map = [&]() -> const char* {
    if (replayer_.allow_writes) return path;
    const char* mapped = overlay_.Map(dirfd, path, use, other);
    if (mapped != other) return mapped;
    std::memcpy(buffer.data(), other, std::min(sizeof other, buffer.size()));
    return buffer.data();
  };
  if (opens && !replayer_.allow_writes && !input_files_.Renew(*replayer_.session, overlay_, name))
    return nullptr;
  if (use == FileUse::kRead || use == FileUse::kLook) {
    const bool counts =
        !has_bytes || !looks_at_link || !input_files_.IsLinkNext(*replayer_.session, name);
    if (use == FileUse::kLook && counts) input_files_.CountLook(*replayer_.session, name);
    const std::string asked = path;
    const char* mapped = map();
    // In a folder that the run made there may be what another rank put there.
    if (mapped == nullptr && (has_bytes || KnowsWhatIsMissing()) &&
        input_files_.Knows(*replayer_.session, name) && overlay_.IsHiddenAsCreated(name))
      mapped = path;
    if (mapped == nullptr || asked != mapped) return mapped;
    if (has_bytes && looks_at_link &&
        input_files_.MapLink(*replayer_.session, name, buffer, mapped))
      return mapped;
    if (has_bytes) return input_files_.Map(*replayer_.session, name, use, mapped, buffer);
    if (IsMissing(name, use)) return nullptr;
    if (use == FileUse::kLook && KnowsWhatIsMissing())
      mapped = input_files_.MapFound(*replayer_.session, name, dirfd, mapped, buffer);
    if (use == FileUse::kRead)
      input_files_.Check(*replayer_.session, replayer_.session->Thread(), name, dirfd, mapped);
    return mapped;
  }
  const bool opens_to_write = use == FileUse::kWrite || use == FileUse::kCreate;
  const bool is_outside = opens_to_write && IsOutside(dirfd, path);
  if (is_outside && use == FileUse::kWrite && IsMissing(name, use)) return nullptr;
  if (has_bytes && !replayer_.allow_writes)
    input_files_.PrepareChange(*replayer_.session, overlay_, name);
  else if (!has_bytes && is_outside)
    input_files_.Check(*replayer_.session, replayer_.session->Thread(), name, dirfd, path);
  return map();
}

// Where the program writes to the files themselves, what it has made is there, too. A replay from a
// checkpoint has not looked before.
bool FileReplayer::KnowsWhatIsMissing() const {
  return !replayer_.allow_writes && replayer_.session->options().checkpoint == 0;
}

bool FileReplayer::IsMissing(std::string_view name, preload::FileUse use) {
  return KnowsWhatIsMissing() && input_files_.IsMissing(*replayer_.session, name, use);
}

// Whether `path` is what it was before the run: processes of the rank have not made, changed or
// removed it.
bool FileReplayer::IsOutside(int dirfd, const char* path) {
  if (replayer_.allow_writes) return true;
  char place[PATH_MAX];
  const ErrnoKeeper keep;
  const bool outside = overlay_.Map(dirfd, path, preload::FileUse::kRead, place) == path;
  return outside;
}

// Where a link that the program has made itself leads; empty: it is none.
std::string FileReplayer::OwnLinkTarget(int dirfd, const char* path) {
  bool inside = false;
  std::string name;
  if (path != nullptr && path[0] != '\0' && replayer_.session != nullptr &&
      replayer_.session->plan().reads_files())
    name = InputName(dirfd, path, inside);
  return inside ? overlay_.FollowOwnLinks(AT_FDCWD, name.c_str())
                : overlay_.FollowOwnLinks(dirfd, path);
}

preload::FdObject* FileReplayer::OnOpened(int dirfd, const char* path, int fd, int flags) {
  struct stat info {};
  if (replayer_.session == nullptr || (flags & O_PATH) != 0 || fstat(fd, &info) != 0 ||
      !S_ISREG(info.st_mode))
    return nullptr;
  bool inside = false;
  const std::string target = OwnLinkTarget(dirfd, path);
  const std::string name =
      target.empty() ? InputName(dirfd, path, inside) : InputName(AT_FDCWD, target.c_str(), inside);
  const uint64_t key = preload::PathKey(name);
  const uint32_t opens = preload::CountOpen(key);
  const bool is_known =
      replayer_.session->plan().reads_files() && input_files_.CountOpen(*replayer_.session, name);
  // What the program has written itself does not come from the trace.
  char real[PATH_MAX];
  const std::string_view place = preload::PathOfDescriptor(fd, real);
  if (!is_known && !overlay_.IsOwn(place)) return nullptr;
  if ((flags & O_ACCMODE) != O_RDONLY) return ServedOutput::Open(key, opens);
  const std::string served = replayer_.session->options().scratch + std::string(kMachineFolder);
  const bool is_from_trace = InputServer::HasBytes(*replayer_.session) && place.starts_with(served);
  return ServedFile::Open(name, key, opens, is_from_trace);
}

bool FileReplayer::FindEntries(DIR* stream, const char* path, ServedFolders::Folder& folder) {
  if (replayer_.session == nullptr || !replayer_.session->plan().reads_files()) return false;
  if (path != nullptr) {
    bool inside = false;
    folder.name = InputName(AT_FDCWD, path, inside);
  } else {
    char real[PATH_MAX];
    const std::string_view place = preload::PathOfDescriptor(dirfd(stream), real);
    folder.name =
        InputServer::NameOf(*replayer_.session, {real, UnmapPath(real, place.size())}, true);
  }
  return input_files_.Entries(*replayer_.session, folder.name, folder.entries);
}

size_t FileReplayer::UnmapPath(char* path, size_t size) {
  return overlay_.Unmap(path, UnmapMachinePath(replayer_.scratch, path, size));
}

// A pipe or a terminal that the process has: the fence knows no name of it.
int FileReplayer::OnOpenRefused(int dirfd, const char* path, int flags) {
  const int own = OwnDescriptor(path);
  const int copy =
      own < 0 ? -1 : fcntl(own, (flags & O_CLOEXEC) != 0 ? F_DUPFD_CLOEXEC : F_DUPFD, 0);
  if (copy < 0) SayRefused(dirfd, path);
  return copy;
}

// Where the fence, and not the file's mode, refuses it.
void FileReplayer::SayRefused(int dirfd, const char* path) {
  constexpr int kMostTold = 20;
  if (!replayer_.fenced_reads || refused_reads_.load(std::memory_order_relaxed) >= kMostTold)
    return;
  const ErrnoKeeper keep;
  char name[PATH_MAX];
  const size_t size =
      preload::AbsolutePath(dirfd, path, std::span(name).first(sizeof name - 1)).size();
  name[size] = '\0';
  if (size != 0 && faccessat(AT_FDCWD, name, R_OK, AT_EACCESS) == 0 &&
      refused_reads_.fetch_add(1, std::memory_order_relaxed) < kMostTold)
    Say("reading " + std::string(name, size) +
        " was refused: this user has not recorded the trace here; allow it with deja replay "
        "--allow-read PATH");
}

}  // namespace deja::replayer
