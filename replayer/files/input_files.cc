#include "replayer/files/input_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <vector>

#include "common/runtime/errno_keeper.h"
#include "common/text/hex_text.h"
#include "digest/digest.h"
#include "preload/files/absolute_path.h"
#include "preload/files/file_facts.h"
#include "replayer/files/machine_files.h"
#include "replayer/files/make_folders.h"

namespace deja::replayer {

using preload::FileUse;

namespace {

// As much as can be compared at a time; ranges of a recording are smaller, if it can be trusted.
constexpr uint64_t kMostRange = 64 << 20;

std::string BytesText(uint64_t begin, uint64_t size) {
  return "bytes " + std::to_string(begin) + " to " + std::to_string(begin + size - 1);
}

// The first bytes of a digest, as `deja show` has them.
std::string DigestText(const Hash128& hash) {
  return HexText({reinterpret_cast<const char*>(hash.bytes.data()), 8});
}

// Reads as much of `bytes` as there is.
size_t ReadAt(int fd, uint64_t offset, std::vector<std::byte>& bytes) {
  size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t n =
        pread(fd, bytes.data() + done, bytes.size() - done, static_cast<off_t>(offset + done));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    done += static_cast<size_t>(n);
  }
  return done;
}

// How the file behind `fd` differs from `file`; empty: in nothing that was read.
std::string Difference(int fd, const RecordedFile& file) {
  struct stat info {};
  if (fstat(fd, &info) != 0) return "cannot be looked at: " + std::string(std::strerror(errno));
  const auto size = static_cast<uint64_t>(info.st_size);
  const std::string sizes = "it has " + std::to_string(size) + " bytes, the recorded run's had " +
                            std::to_string(file.size);
  std::vector<std::byte> bytes;
  for (const RecordedRange& range : file.ranges) {
    if (range.how == format::FileReadHow::kChanged || range.size > kMostRange) continue;
    bytes.resize(range.size);
    const size_t got = ReadAt(fd, range.begin, bytes);
    if (got < range.size)
      return "ends within " + BytesText(range.begin, range.size) +
             ", which the recorded run read (digest " + DigestText(range.hash) + "): " + sizes;
    const Hash128 live = digest::HashBytes(bytes);
    if (live == range.hash) continue;
    std::string text = "differs in " + BytesText(range.begin, range.size) +
                       ", which the recorded run read: recorded digest " + DigestText(range.hash) +
                       ", live " + DigestText(live);
    return size == file.size ? text : text + "; " + sizes;
  }
  return size == file.size ? std::string() : "has another size: " + sizes;
}

// The same file in the same state has the same place, in each process of the rank.
std::string PlaceOf(const Session& session, const RecordedFile& file) {
  const std::string state = file.path + "\n" + std::to_string(file.size) + " " +
                            std::to_string(file.mtime_ns) + " " + std::to_string(file.mode);
  const Hash128 hash = digest::HashBytes(std::as_bytes(std::span(state)));
  return session.options().scratch + std::string(kMachineFolder) + "f" + DigestText(hash) +
         file.path;
}

// Names come from a trace: none may lead out of the folder.
bool IsPlainPath(std::string_view path) {
  if (path.empty() || path[0] != '/' || path.size() >= PATH_MAX / 2) return false;
  return path.find("/../") == std::string_view::npos && path.find('\0') == std::string_view::npos &&
         (path.size() < 3 || path.substr(path.size() - 3) != "/..");
}

timespec TimeOf(int64_t ns) {
  constexpr int64_t kSecond = 1'000'000'000;
  const int64_t rest = (ns % kSecond + kSecond) % kSecond;
  return {(ns - rest) / kSecond, rest};
}

void SetTimeAndMode(const std::string& path, const RecordedFile& file) {
  const timespec times[2] = {TimeOf(file.mtime_ns), TimeOf(file.mtime_ns)};
  utimensat(AT_FDCWD, path.c_str(), times, AT_SYMLINK_NOFOLLOW);
  if (!S_ISLNK(file.mode)) chmod(path.c_str(), file.mode & 07777);
}

// An empty file of its size, or a link. Another process of the rank may have made it.
bool MakeEmpty(const std::string& path, const RecordedFile& file) {
  struct stat info {};
  if (lstat(path.c_str(), &info) == 0) return true;
  if (S_ISLNK(file.mode))
    return symlink(file.entries.c_str(), path.c_str()) == 0 || errno == EEXIST;
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
  const bool ok = fd >= 0 && ftruncate(fd, static_cast<off_t>(file.size)) == 0;
  if (fd >= 0) close(fd);
  return ok;
}

// A link's text from a trace that can be a link's text.
bool IsLinkText(std::string_view text) {
  return !text.empty() && text.size() < PATH_MAX && text.find('\0') == std::string_view::npos;
}

}  // namespace

std::string InputServer::NameOf(const Session& session, std::string_view path, bool is_relative) {
  const std::string& here = session.options().working_directory;
  const std::string& recorded = session.plan().working_directory;
  const bool moved = is_relative && here != recorded && !here.empty() && !recorded.empty() &&
                     path.substr(0, here.size()) == here &&
                     (path.size() == here.size() || path[here.size()] == '/');
  return moved ? recorded + std::string(path.substr(here.size())) : std::string(path);
}

void InputServer::LearnCreated(const ReplayPlan& plan,
                               const std::vector<format::CreatedName>& by_others) {
  for (const auto& [path, time_ns] : plan.created_ns()) created_[path] = {time_ns, false};
  for (const format::CreatedName& name : by_others) {
    const auto [it, is_new] = created_.try_emplace(name.path);
    if (is_new || name.time_ns < it->second.time_ns) it->second = {name.time_ns, name.was_there};
  }
  for (auto& [path, created] : created_) {
    const std::vector<uint32_t>* states = plan.FindFile(path);
    if (states == nullptr) continue;
    const RecordedFile& first = plan.files()[states->front()];
    if (first.error == 0 && first.time_ns < created.time_ns) created.was_there = true;
  }
}

bool InputServer::IsMadeByRun(const RecordedFile& file) const {
  const auto it = created_.find(file.path);
  return it != created_.end() && it->second.time_ns < file.time_ns && file.tries == 0;
}

bool InputServer::Knows(const Session& session, std::string_view name) const {
  const std::vector<uint32_t>* states = session.plan().FindFile(name);
  return states != nullptr && std::any_of(states->begin(), states->end(), [&](uint32_t index) {
           const RecordedFile& file = session.plan().files()[index];
           return file.tries == 0 && !IsMadeByRun(file);
         });
}

const RecordedFile* InputServer::Find(Session& session, std::string_view name, Met met, Made made) {
  const std::vector<uint32_t>* states = session.plan().FindFile(name);
  if (states == nullptr) return nullptr;
  std::lock_guard<std::mutex> lock(mutex_);
  const auto count = [&](const auto& counts) {
    const auto it = counts.find(name);
    return it == counts.end() ? 0 : it->second;
  };
  const uint64_t opens = count(opens_);
  // The number of this look, which an open has, too, if it finds nothing.
  const uint64_t look = count(looks_) + (met == Met::kByLook ? 0 : 1);
  const RecordedFile* found = nullptr;
  for (uint32_t index : *states) {
    const RecordedFile& file = session.plan().files()[index];
    if (file.tries != 0) continue;  // Renew's
    if (made == Made::kLeftOut && IsMadeByRun(file)) continue;
    if (found != nullptr && file.opens > opens) break;
    // The number of opens says what an open finds, but not whether there was anything yet.
    const bool tells = met == Met::kByLook || (found != nullptr && found->error != 0);
    if (found != nullptr && tells && file.looks > look && file.opens == opens) break;
    // That it went away without an open in between is the run's own doing, or was not noticed.
    const bool is_of_a_look = met == Met::kByLook && file.looks != 0;
    if (found != nullptr && found->error == 0 && file.error != 0 && file.opens == found->opens &&
        !is_of_a_look)
      continue;
    found = &file;
  }
  return found;
}

void InputServer::CountLook(const Session& session, std::string_view name) {
  if (session.plan().FindFile(name) == nullptr) return;
  std::lock_guard<std::mutex> lock(mutex_);
  ++looks_[std::string(name)];
}

bool InputServer::CountOpen(Session& session, std::string_view name) {
  if (session.plan().FindFile(name) == nullptr) return false;
  std::lock_guard<std::mutex> lock(mutex_);
  ++opens_[std::string(name)];
  return true;
}

bool InputServer::Renew(Session& session, Overlay& overlay, std::string_view name) {
  const std::vector<uint32_t>* states = session.plan().FindFile(name);
  if (states == nullptr) return true;
  const RecordedFile* file = nullptr;
  bool is_shared = false;
  const RecordedFile& first = session.plan().files()[states->front()];
  const bool was_there = first.tries == 0 && first.error == 0 && !IsMadeByRun(first);
  {
    std::lock_guard<std::mutex> lock(mutex_);
    const uint64_t tries = ++tries_[std::string(name)];
    for (uint32_t index : *states) {
      const RecordedFile& state = session.plan().files()[index];
      is_shared = is_shared || state.tries != 0;
      if (state.tries != 0 && state.tries <= tries) file = &state;
    }
    if (file != nullptr && !renewed_.insert(file->number).second) return true;
  }
  const int saved_errno = errno;
  // What is there now may be what they left. What could not be made is gone afterwards: a program
  // that waits for that has seen it go.
  if (file == nullptr && is_shared && !was_there) overlay.HideCreated(std::string(name));
  if (file != nullptr && file->error != 0) overlay.Remove(file->path);
  if (file != nullptr && file->error == 0) {
    const std::string made = Make(session, *file, true);
    if (!made.empty()) overlay.Replace(file->path, made.c_str());
  }
  const bool is_taken = file != nullptr && file->error == EEXIST;
  errno = is_taken ? EEXIST : saved_errno;
  return !is_taken;
}

void InputServer::Check(Session& session, ThreadState& thread, std::string_view name, int dirfd,
                        const char* path) {
  const RecordedFile* file = Find(session, name);
  if (file == nullptr || file->error != 0 || !S_ISREG(file->mode)) return;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (!checked_.insert(file->number).second) return;
  }
  const ErrnoKeeper keep;
  const int fd = openat(dirfd, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  std::string what = fd < 0 ? "cannot be opened, which the recorded run could: " +
                                  std::string(std::strerror(errno))
                            : Difference(fd, *file);
  if (fd >= 0) close(fd);
  if (!what.empty()) {
    Divergence divergence = session.divergences().New(DivergenceKind::kFile);
    divergence.api = "open";
    divergence.what = "the file " + file->path + " " + what;
    if (file->written)
      divergence.what +=
          " (the recorded run wrote to it: `deja record --inputs full` keeps how it was)";
    session.divergences().Diverge(thread, std::move(divergence), 0);
  }
}

// Puts the recorded ranges into the file at `path`.
bool InputServer::Fill(Session& session, const RecordedFile& file, const std::string& path) {
  chmod(path.c_str(), 0600);
  const int fd = open(path.c_str(), O_WRONLY | O_CLOEXEC);
  bool ok = fd >= 0;
  for (const RecordedRange& range : file.ranges) {
    if (!ok || !range.kept || range.size > kMostRange || range.begin + range.size > file.size)
      continue;
    const auto bytes = session.payloads().Read(range.hash, range.size);
    ok = bytes && pwrite(fd, bytes->data(), bytes->size(), static_cast<off_t>(range.begin)) ==
                      static_cast<ssize_t>(bytes->size());
  }
  if (fd >= 0) close(fd);
  SetTimeAndMode(path, file);
  return ok;
}

std::string InputServer::Make(Session& session, const RecordedFile& file, bool with_content) {
  if (!IsPlainPath(file.path)) return {};
  std::string path = PlaceOf(session, file);
  const bool is_folder = S_ISDIR(file.mode);
  std::lock_guard<std::mutex> lock(mutex_);
  auto made = made_.find(file.number);
  if (made == made_.end()) {
    const bool ok = MakeFolders(is_folder ? path : path.substr(0, path.rfind('/')));
    if (!ok || (!is_folder && !MakeEmpty(path, file))) return {};
    SetTimeAndMode(path, file);
    made = made_.emplace(file.number, false).first;
  }
  if (with_content && !is_folder && !made->second) {
    if (!Fill(session, file, path)) return {};
    made->second = true;
  }
  return path;
}

bool InputServer::IsMissing(Session& session, std::string_view name, FileUse use) {
  const RecordedFile* file =
      Find(session, name, use == FileUse::kLook ? Met::kByLook : Met::kByOpen);
  if (file == nullptr || file->error == 0) return false;
  errno = file->error;
  return true;
}

const char* InputServer::MapFound(Session& session, std::string_view name, int dirfd,
                                  const char* path, std::span<char> buffer) {
  const RecordedFile* file = Find(session, name, Met::kByLook);
  if (file == nullptr || file->looks == 0) return path;
  const ErrnoKeeper keep;
  const bool is_there = faccessat(dirfd, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
  return is_there ? path : Map(session, name, FileUse::kLook, path, buffer);
}

const char* InputServer::Map(Session& session, std::string_view name, FileUse use, const char* path,
                             std::span<char> buffer) {
  const RecordedFile* file =
      Find(session, name, use == FileUse::kLook ? Met::kByLook : Met::kByOpen);
  if (file == nullptr) return path;
  if (file->error != 0) {
    errno = file->error;
    return nullptr;
  }
  if (!S_ISREG(file->mode) && !S_ISDIR(file->mode)) return path;
  const ErrnoKeeper keep;
  // A folder that is there is used as it is: it may hold what is no input (Python's modules).
  struct stat live {};
  const bool is_there = S_ISDIR(file->mode) && use == FileUse::kRead && stat(path, &live) == 0 &&
                        S_ISDIR(live.st_mode);
  if (is_there) return path;
  const std::string made = Make(session, *file, use == FileUse::kRead);
  if (made.empty() || made.size() >= buffer.size()) return path;
  std::memcpy(buffer.data(), made.c_str(), made.size() + 1);
  return buffer.data();
}

const RecordedFile* InputServer::FindLink(Session& session, std::string_view name, bool counts) {
  const std::vector<uint32_t>* states = session.plan().FindLink(name);
  if (states == nullptr) return nullptr;
  std::lock_guard<std::mutex> lock(mutex_);
  uint64_t& looks = looks_at_links_[std::string(name)];
  const RecordedFile* found = nullptr;
  for (uint32_t index : *states) {
    const RecordedFile& file = session.plan().files()[index];
    if (file.opens > looks) break;
    found = &file;
  }
  if (counts) ++looks;
  return found != nullptr && (found->error != 0 || IsLinkText(found->entries)) ? found : nullptr;
}

bool InputServer::IsLinkNext(Session& session, std::string_view name) {
  const RecordedFile* link = FindLink(session, name, false);
  return link != nullptr && link->error != EINVAL;
}

bool InputServer::MapLink(Session& session, std::string_view name, std::span<char> buffer,
                          const char*& mapped) {
  const RecordedFile* link = FindLink(session, name, true);
  if (link == nullptr || link->error == EINVAL) return false;
  if (link->error != 0) {
    errno = link->error;
    mapped = nullptr;
    return true;
  }
  const ErrnoKeeper keep;
  const std::string made = Make(session, *link, false);
  if (made.empty() || made.size() >= buffer.size()) return false;
  std::memcpy(buffer.data(), made.c_str(), made.size() + 1);
  mapped = buffer.data();
  return true;
}

std::string InputServer::Resolve(Session& session, const std::string& name) {
  constexpr int kMostLinks = 40;  // as the kernel
  std::string whole = name;
  int links = 0;
  for (size_t end = 0; end < whole.size() && links < kMostLinks;) {
    end = std::min(whole.find('/', end + 1), whole.size());
    const std::string prefix = whole.substr(0, end);
    const RecordedFile* link = FindLink(session, prefix, false);
    if (link == nullptr || link->error != 0) continue;  // the recorded run did not count this look
    FindLink(session, prefix, true);
    ++links;
    char next[PATH_MAX];
    size_t size = link->entries[0] == '/' ? 0 : prefix.rfind('/');
    if (size >= sizeof next) return name;
    std::memcpy(next, prefix.data(), size);
    if (!preload::AppendPath(link->entries, next, size) ||
        !preload::AppendPath(std::string_view(whole).substr(end), next, size))
      return name;
    whole.assign(next, size);
    end = 0;
  }
  return whole;
}

// What the recording does not have is set as for an untouched file, so that it is the same in each
// replay.
void InputServer::Describe(Session& session, std::string_view name, struct stat& info) {
  const RecordedFile* file =
      S_ISLNK(info.st_mode) ? FindLink(session, name, false) : Find(session, name, Met::kByLook);
  if (file == nullptr || file->error != 0 || (file->mode & S_IFMT) != (info.st_mode & S_IFMT))
    return;
  info.st_dev = file->device;
  info.st_ino = file->inode;
  info.st_mode = file->mode;
  info.st_size = static_cast<off_t>(file->size);
  info.st_mtim = info.st_ctim = TimeOf(file->mtime_ns);
  if (!S_ISREG(file->mode)) return;
  preload::ReadFileFacts(file->entries, info);
  constexpr uint64_t kPage = 4096;
  info.st_blocks = static_cast<blkcnt_t>((file->size + kPage - 1) / kPage * (kPage / S_BLKSIZE));
}

void InputServer::TellApart(const Session& session, struct stat& info) {
  constexpr ino_t kFarAway = ino_t{1} << 40;
  const std::lock_guard<std::mutex> lock(mutex_);
  if (recorded_.empty())
    for (const RecordedFile& file : session.plan().files())
      recorded_.emplace(file.device, file.inode);
  if (recorded_.contains({info.st_dev, info.st_ino})) info.st_ino += kFarAway;
}

uint64_t InputServer::Inode(Session& session, std::string_view name) {
  const RecordedFile* file = FindLink(session, name, false);
  if (file == nullptr) file = Find(session, name, Met::kByLook, Made::kCounts);
  return file == nullptr || file->error != 0 ? 0 : file->inode;
}

void InputServer::PrepareChange(Session& session, Overlay& overlay, const std::string& name) {
  const ErrnoKeeper keep;
  const size_t slash = name.rfind('/');
  const std::string folder = slash == 0 ? "/" : name.substr(0, slash);
  struct stat info {};
  // The folder may be one that is only in the trace.
  if (stat(folder.c_str(), &info) != 0 && session.plan().HasFilesBelow(folder))
    overlay.Seed(folder, nullptr);
  const RecordedFile* file = Find(session, name);
  if (file != nullptr && file->error == ENOENT) overlay.Seed(name, "");
  if (file != nullptr && file->error == 0 && S_ISREG(file->mode)) {
    const std::string made = Make(session, *file, true);
    if (!made.empty()) overlay.Seed(name, made.c_str());
  }
}

bool InputServer::Entries(Session& session, std::string_view name, std::string& entries) {
  const RecordedFile* file = Find(session, name, Met::kByOpen, Made::kCounts);
  if (file == nullptr || !S_ISDIR(file->mode) || !CountOpen(session, name)) return false;
  if (file->entries_hash.IsZero()) {
    entries = file->entries;
    return !entries.empty();
  }
  const uint64_t size = session.payloads().SizeOf(file->entries_hash).value_or(0);
  const auto bytes =
      size > kMostRange ? std::nullopt : session.payloads().Read(file->entries_hash, size);
  if (bytes) entries.assign(reinterpret_cast<const char*>(bytes->data()), bytes->size());
  return bytes.has_value();
}

void InputServer::FillInherited(Session& session) {
  const ErrnoKeeper keep;
  for (const RecordedFile& file : session.plan().files()) {
    const bool is_made = !file.ranges.empty() && IsPlainPath(file.path) &&
                         access(PlaceOf(session, file).c_str(), F_OK) == 0;
    if (is_made) Make(session, file, true);
  }
}

}  // namespace deja::replayer
