#include "recorder/files/input_files.h"

#define XXH_INLINE_ALL
#include <fcntl.h>
#include <sys/sysmacros.h>
#include <unistd.h>
#include <xxhash.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstring>
#include <ctime>

#include "common/secrets/secret_files.h"
#include "digest/digest.h"
#include "preload/files/absolute_path.h"
#include "preload/files/file_facts.h"
#include "preload/meet/shared_moves.h"
#include "recorder/core/recording.h"
#include "recorder/files/opened_input.h"
#include "recorder/files/opened_output.h"
#include "recorder/files/own_files.h"

namespace deja::recorder {
namespace {

// The largest file that is recorded as a whole when it is opened for writing; nothing is recorded
// of a larger one.
constexpr uint64_t kMostWhole = 256 << 20;
// What others have changed during the run is kept up to this size, and in all up to the second one.
// More is an input like others.
constexpr uint64_t kMostOfOthers = 64 << 20;
constexpr uint64_t kMostOfAllOthers = uint64_t{1} << 30;

// With digests: names that are not there, and names that the program removes. What is more is not
// recorded: a program may ask for a file for each of its samples.
constexpr uint32_t kMostMissed = 64 << 10;

// Once for each state of a file.
void WarnOfSecrets(std::string_view path) {
  if (!IsSecretFile(path)) return;
  char text[PATH_MAX + 200];
  const int size = std::snprintf(text, sizeof text,
                                 "recording: %.*s: a file of secrets by its name, and --inputs "
                                 "full keeps its contents; leave it out with --inputs-exclude",
                                 static_cast<int>(path.size()), path.data());
  if (size > 0) SayOnce({text, std::min<size_t>(static_cast<size_t>(size), sizeof text - 1)});
}
// A change within one tick of the kernel's clock does not show in a file's time.
constexpr int64_t kYoungNs = 100'000'000;

int64_t Ns(const timespec& time) {
  return static_cast<int64_t>(time.tv_sec) * 1'000'000'000 + time.tv_nsec;
}

bool IsWithin(std::string_view path, std::string_view folder) {
  return !folder.empty() && path.substr(0, folder.size()) == folder &&
         (path.size() == folder.size() || path[folder.size()] == '/');
}

// An open that finds nothing asks no more than a look does.
bool IsLook(preload::FileUse use, int error) {
  using preload::FileUse;
  const bool misses = error == ENOENT || error == ENOTDIR;
  return use == FileUse::kLook || use == FileUse::kLookAtLink ||
         (misses && (use == FileUse::kRead || use == FileUse::kWrite));
}

uint64_t KeyOf(std::string_view path, bool is_link) {
  return XXH3_64bits_withSeed(path.data(), path.size(), is_link ? 1 : 0) | 1;
}

// The same for most ways to write a name: relative or not, with slashes at its end or not.
uint64_t HashOfLastPart(std::string_view path) {
  while (path.size() > 1 && path.back() == '/') path.remove_suffix(1);
  const std::string_view last = path.substr(path.rfind('/') + 1);
  return XXH3_64bits(last.data(), last.size());
}

bool IsOwnExecutable(const struct stat& info) {
  struct stat executable {};
  return stat("/proc/self/exe", &executable) == 0 && executable.st_ino == info.st_ino &&
         executable.st_dev == info.st_dev;
}

}  // namespace

bool IsSameState(const struct stat& a, const struct stat& b) {
  return a.st_dev == b.st_dev && a.st_ino == b.st_ino && a.st_size == b.st_size &&
         a.st_mode == b.st_mode && Ns(a.st_mtim) == Ns(b.st_mtim);
}

InputFiles::InputFiles(const Config& config)
    : config_(config), rule_(config.inputs_include, config.inputs_exclude) {}

bool InputFiles::IsInput(std::string_view path) const {
  return rule_.IsInput(path) && !IsWithin(path, config_.trace_dir) &&
         !IsWithin(path, config_.tail_dir) && !IsWithin(path, config_.python_dir);
}

std::string_view InputFiles::Keep(std::string_view path) {
  constexpr size_t kChunk = 64 << 10;
  if (path.size() > text_left_) {
    text_ = static_cast<char*>(MapZeroed(kChunk));
    text_left_ = text_ == nullptr ? 0 : kChunk;
  }
  if (text_ == nullptr || path.size() > text_left_) return {};
  std::memcpy(text_, path.data(), path.size());
  const std::string_view kept(text_, path.size());
  text_ += path.size();
  text_left_ -= path.size();
  return kept;
}

void InputFiles::Opening(Recording& rec, int dirfd, const char* path) {
  if (config_.inputs == InputMode::kOff) return;
  char buffer[PATH_MAX];
  const std::string_view name = preload::AbsolutePath(dirfd, path, buffer);
  if (name.empty() || !IsInput(name)) return;
  {
    Hold hold(lock_);
    PathRecord* record = RecordOf(name, false);
    if (record == nullptr) return;
    ++record->tries;
    if (!record->is_shared) return;
  }
  struct stat info {};
  if (fstatat(dirfd, path, &info, 0) == 0 || errno != ENOENT) return;
  FileNews what;
  what.error = ENOENT;
  what.others = true;
  Know(rec, name, {}, false, what);
}

void InputFiles::Taken(Recording& rec, int dirfd, const char* path) {
  if (config_.inputs == InputMode::kOff || (rec.is_child() && !rec.is_rank())) return;
  char buffer[PATH_MAX];
  const std::string_view name = preload::AbsolutePath(dirfd, path, buffer);
  if (name.empty() || !IsInput(name)) return;
  struct stat info {};
  if (fstatat(dirfd, path, &info, AT_SYMLINK_NOFOLLOW) == 0) {
    const auto start = static_cast<int64_t>(rec.facts.start_wall_ns());
    const bool is_others = S_ISREG(info.st_mode) && OwnFile::Find(info, dirfd, path) == nullptr &&
                           start != 0 && Ns(info.st_mtim) >= start;
    if (!is_others) return;  // a replay finds it there by itself
  }
  FileNews what;
  what.error = EEXIST;
  what.others = true;
  Know(rec, name, {}, false, what);
}

void InputFiles::Looked(Recording& rec, int dirfd, const char* path, preload::FileUse use) {
  if (!keeps_bytes()) return;
  char buffer[PATH_MAX];
  const std::string_view name = preload::AbsolutePath(dirfd, path, buffer);
  if (name.empty() || !IsInput(name)) return;
  if (IsOwnLink(name, dirfd, path)) return Resolved(rec, dirfd, path);
  struct stat info {};
  FileNews what;
  const bool is_there = fstatat(dirfd, path, &info, 0) == 0;
  if (!is_there) what.error = errno;
  what.looked = IsLook(use, what.error);
  if (what.looked) CountLook(name);
  if (!is_there) {
    info = {};
    Hold hold(lock_);
    const bool creates = use == preload::FileUse::kCreate || use == preload::FileUse::kMakeDir;
    PathRecord* record = creates ? RecordOf(name, false) : nullptr;
    if (record != nullptr && what.error == ENOENT) record->is_created = true;
  } else if (S_ISREG(info.st_mode)) {
    // What others have changed is recorded as a whole when it is open.
    const OwnFile* own = OwnFile::Find(info, dirfd, path);
    if (own != nullptr || (preload::Opens(use) && IsOfOthers(rec, info, own))) return;
  }
  Know(rec, name, info, false, what);
}

bool InputFiles::LookedAtLink(Recording& rec, int dirfd, const char* path) {
  if (!keeps_bytes()) return false;
  char buffer[PATH_MAX];
  const std::string_view name = preload::AbsolutePath(dirfd, path, buffer);
  if (name.empty() || !IsInput(name)) return false;
  if (IsOwnLink(name, dirfd, path)) return true;
  struct stat info {};
  FileNews what;
  char text[PATH_MAX];
  if (fstatat(dirfd, path, &info, AT_SYMLINK_NOFOLLOW) != 0) {
    what.error = errno;
  } else if (S_ISLNK(info.st_mode)) {
    const ssize_t size = readlinkat(dirfd, path, text, sizeof text);
    if (size <= 0) return false;
    what.entries = {text, static_cast<size_t>(size)};
  } else {
    what.error = EINVAL;  // as readlink
  }
  if (what.error != 0) {
    info = {};
    info.st_mode = S_IFLNK;
    Hold hold(lock_);
    PathRecord* record = RecordOf(name, false);
    if (record != nullptr && what.error != EINVAL) record->was_missing = true;
    // Only who has been told that nothing is there needs to know that something is.
    if (record == nullptr) return false;
    if (!record->was_missing) {
      if (PathRecord* link = RecordOf(name, true)) ++link->opens;
      return false;
    }
  }
  Know(rec, name, info, true, what);
  return what.error != EINVAL;
}

void InputFiles::Resolved(Recording& rec, int dirfd, const char* path) {
  if (!keeps_bytes()) return;
  constexpr int kMostLinks = 40;  // as the kernel
  char names[2][PATH_MAX];
  char text[PATH_MAX];
  std::string_view name = preload::AbsolutePath(dirfd, path, names[0]);
  int links = 0;
  for (size_t end = 0; !name.empty() && end < name.size();) {
    end = std::min(name.find('/', end + 1), name.size());
    char prefix[PATH_MAX];
    if (end >= sizeof prefix) return;
    std::memcpy(prefix, name.data(), end);
    prefix[end] = '\0';
    const ssize_t size = readlink(prefix, text, sizeof text);
    if (size <= 0) continue;
    if (++links > kMostLinks) return;
    LookedAtLink(rec, AT_FDCWD, prefix);
    // From here on the link's text stands for its name.
    char* next = names[links % 2];
    size_t length = text[0] == '/' ? 0 : std::min(std::string_view(prefix, end).rfind('/'), end);
    std::memcpy(next, prefix, length);
    const std::span room(next, PATH_MAX);
    if (!preload::AppendPath({text, static_cast<size_t>(size)}, room, length) ||
        !preload::AppendPath(name.substr(end), room, length))
      return;
    name = {next, length};
    end = 0;
  }
  if (name.empty() || name.size() >= sizeof text) return;
  std::memcpy(text, name.data(), name.size());
  text[name.size()] = '\0';
  Looked(rec, AT_FDCWD, text, preload::FileUse::kLook);
}

void InputFiles::Folder(Recording& rec, std::string_view path, const struct stat& info,
                        std::string_view entries) {
  FileNews what;
  what.entries = entries;
  Know(rec, path, info, true, what);
}

void InputFiles::CountLook(std::string_view path) {
  Hold hold(lock_);
  if (PathRecord* record = RecordOf(path, false)) ++record->looks;
}

bool InputFiles::IsNews(PathRecord& record, const Answer& answer) {
  if (answer.removes) {
    removed_ += record.is_removed ? 0 : 1;
    record.is_removed = true;
    return false;
  }
  if (!record.is_missed) {
    // What was there before is gone: the run's own doing, which a replay repeats.
    const bool was_there = record.is_removed || record.last != nullptr;
    if (was_there || !answer.misses) return false;
    record.is_missed = true;
    ++missed_;
  }
  record.looks += answer.looks ? 1 : 0;
  return answer.misses || record.last == nullptr || record.last->error != 0;
}

void InputFiles::Answered(Recording& rec, int dirfd, const char* path, preload::FileUse use,
                          int error) {
  using preload::FileUse;
  if (config_.inputs != InputMode::kDigest) return;
  Answer answer;
  answer.looks = IsLook(use, error);
  answer.removes = use == FileUse::kRemove && error == 0;
  answer.misses = answer.looks && (error == ENOENT || error == ENOTDIR);
  const bool finds = answer.looks && error == 0 && maybe_missed_.MayHave(HashOfLastPart(path));
  if (!answer.removes && !answer.misses && !finds) return;
  const ErrnoKeeper keep;
  char buffer[PATH_MAX];
  const std::string_view name = preload::AbsolutePath(dirfd, path, buffer);
  if (name.empty()) return;
  bool is_known = false;
  bool is_full = false;
  {
    Hold hold(lock_);
    is_known = FindRecord(name) != nullptr;
    is_full = missed_ >= kMostMissed || removed_ >= kMostMissed;
  }
  if (!is_known && (finds || is_full || !IsInput(name))) return;
  {
    Hold hold(lock_);
    PathRecord* record = RecordOf(name, false);
    if (record == nullptr || !IsNews(*record, answer)) return;
  }
  struct stat info {};
  FileNews what;
  what.looked = answer.looks;
  if (answer.misses) {
    maybe_missed_.Add(HashOfLastPart(path));
    what.error = error;
  } else if (fstatat(dirfd, path, &info, 0) != 0 || OwnFile::Find(info, dirfd, path) != nullptr) {
    return;
  }
  Know(rec, name, info, false, what);
}

InputFiles::PathRecord* InputFiles::FindRecord(std::string_view path) {
  const uint32_t at = paths_.Find(KeyOf(path, false));
  return at == KeyMap::kMissing || at >= records_.size() ? nullptr : &records_[at];
}

InputFiles::PathRecord* InputFiles::RecordOf(std::string_view path, bool is_link) {
  bool is_new = false;
  const uint32_t at = paths_.FindOrAdd(KeyOf(path, is_link), next_record_, is_new);
  if (at == KeyMap::kMissing) return nullptr;
  while (records_.size() <= at)
    if (records_.Add() == records_.kMissing) return nullptr;
  return &records_[at];
}

bool InputFiles::IsOwnLink(std::string_view name, int dirfd, const char* path) {
  {
    Hold hold(lock_);
    const PathRecord* record = RecordOf(name, false);
    if (record == nullptr || !record->is_created) return false;
  }
  struct stat info {};
  return fstatat(dirfd, path, &info, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(info.st_mode);
}

uint32_t KnownFile::Segment() const {
  const format::RankLog* log = windowed == nullptr ? nullptr : windowed->log();
  return log == nullptr ? 0 : log->current_segment();
}

void KnownFile::Learn(uint64_t begin, uint64_t end, uint32_t segment) {
  if (windowed != nullptr && seen_segment.load(std::memory_order_relaxed) != segment) {
    seen.Clear();
    seen_segment.store(segment, std::memory_order_relaxed);
  }
  seen.Mark(begin, end);
}

KnownFile* InputFiles::Know(Recording& rec, std::string_view path, const struct stat& info,
                            bool opens, const FileNews& what) {
  KnownFile* file = nullptr;
  const uint64_t entries =
      what.entries.empty() ? 0 : XXH3_64bits(what.entries.data(), what.entries.size()) | 1;
  Place place;
  {
    Hold hold(lock_);
    PathRecord* known = RecordOf(path, S_ISLNK(info.st_mode));
    if (known == nullptr) return nullptr;
    PathRecord& record = *known;
    place.opens = record.opens;
    if (opens) ++record.opens;
    record.is_shared = record.is_shared || what.others;
    if (what.others) place.tries = record.tries;
    // Links are counted by their opens.
    if ((keeps_bytes() || record.is_missed) && !S_ISLNK(info.st_mode))
      place.looks = record.looks + (what.looked ? 0 : 1);
    const KnownFile* last = record.last;
    const bool is_same = last != nullptr && last->error == what.error &&
                         IsSameState(last->info, info) && last->others == what.others &&
                         (entries == 0 || last->entries == entries);
    const auto is_again = [&] {
      return what.others ? last->may_change || what.error == EEXIST : what.written;
    };
    if (is_same && !is_again()) return record.last;
    const uint32_t index = files_.Add();
    if (index == files_.kMissing) return nullptr;
    file = &files_[index];
    file->path = record.last != nullptr ? record.last->path : Keep(path);
    if (file->path.empty()) return nullptr;
    file->number = index + 1;
    file->generation = InputGeneration();
    file->info = info;
    file->error = what.error;
    file->entries = entries;
    file->others = what.others;
    timespec now{};
    clock_gettime(CLOCK_REALTIME, &now);
    file->may_change = Ns(now) - Ns(info.st_mtim) < kYoungNs;
    if (S_ISREG(info.st_mode) && !what.program)
      file->seen.SetSize(static_cast<uint64_t>(info.st_size));
    if (keeps_bytes() && config_.window.Drops()) file->windowed = &rec;
    record.last = file;
  }
  Announce(rec, *file, place, what);
  return file;
}

void InputFiles::Announce(Recording& rec, const KnownFile& file, const Place& place,
                          const FileNews& what) {
  format::InputFile event;
  event.file = file.number;
  event.path = file.path;
  event.mode = file.info.st_mode;
  event.size = static_cast<uint64_t>(file.info.st_size);
  event.program = what.program;
  // Thousands of them: what says nothing of a module's contents costs space.
  event.mtime_ns = what.program ? Ns({file.info.st_mtim.tv_sec, 0}) : Ns(file.info.st_mtim);
  if (!what.program) {
    event.device = file.info.st_dev;
    event.inode = file.info.st_ino;
  }
  event.opens = place.opens;
  event.written = what.written;
  event.tries = place.tries;
  event.looks = what.program ? 0 : place.looks;
  event.error = static_cast<uint32_t>(what.error);
  constexpr size_t kMostInline = 2 << 10;
  char facts[preload::kMaxFileFacts];
  const bool is_full = rec.config.inputs == InputMode::kFull && !what.program;
  if (is_full && S_ISREG(file.info.st_mode) && what.error == 0) {
    WarnOfSecrets(file.path);
    event.entries = preload::WriteFileFacts(file.info, facts);
  } else if (what.entries.size() <= kMostInline) {
    event.entries = what.entries;
  } else {
    const auto bytes = std::as_bytes(std::span(what.entries));
    event.entries_hash = digest::HashBytes(bytes);
    event.segment = rec.KeepPayload(event.entries_hash, bytes, 1).segment;
  }
  rec.writer.Write(event);
  rec.RelieveStaging();
}

OpenedInput* InputFiles::Begin(KnownFile* file, uint64_t key, uint32_t open) {
  OpenedInput* input = OpenedInput::Take();
  if (input != nullptr) input->Begin(file, key, open);
  return input;
}

// What another process has written since this one began, or since it wrote it itself, is nowhere
// else when the run is replayed.
bool InputFiles::IsOfOthers(const Recording& rec, const struct stat& info, const OwnFile* own) {
  const auto size = static_cast<uint64_t>(info.st_size);
  if (size == 0 || size > kMostOfOthers ||
      kept_of_others_.load(std::memory_order_relaxed) > kMostOfAllOthers)
    return false;
  if (own != nullptr) return own->IsChangedByOthers(info);
  // What a rank's child finds is mostly its parent's, which a replay makes again.
  const auto start = static_cast<int64_t>(rec.facts.start_wall_ns());
  const bool is_child = rec.is_child() && !rec.is_rank();
  return !is_child && start != 0 && Ns(info.st_mtim) >= start;
}

preload::FdObject* InputFiles::Opened(Recording& rec, int dirfd, const char* path, int fd,
                                      int flags) {
  const bool makes = (flags & (O_CREAT | O_EXCL)) == (O_CREAT | O_EXCL);
  const bool writes = makes || (flags & O_ACCMODE) != O_RDONLY;
  const bool is_module = !writes && ProgramFiles::IsModule(path);
  const bool is_off = config_.inputs == InputMode::kOff && !is_module;
  if (is_off || (flags & O_PATH) != 0) return nullptr;
  struct stat info {};
  if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) return nullptr;
  char buffer[PATH_MAX];
  std::string_view name = preload::AbsolutePath(dirfd, path, buffer);
  if (keeps_bytes() && !name.empty() && IsOwnLink(name, dirfd, path))
    name = preload::PathOfDescriptor(fd, buffer);
  const OwnFile* own = OwnFile::Find(info, fd);
  if (is_module && own == nullptr && !name.empty() && !Wants(name)) {
    if (!IsWithin(name, config_.python_dir)) program_files_.Opened(rec, *this, name, info);
    return nullptr;
  }
  if (name.empty() || !IsInput(name) || IsOwnExecutable(info)) return nullptr;
  const uint64_t key = preload::PathKey(name);
  const uint32_t opens = preload::CountOpen(key);
  FileNews what;
  what.written = writes;
  const bool reads = (flags & O_ACCMODE) != O_WRONLY && (flags & O_TRUNC) == 0;
  what.others = reads && IsOfOthers(rec, info, own);
  if (!writes && own == nullptr && !what.others) {
    KnownFile* file = Know(rec, name, info, true);
    return file == nullptr ? nullptr : Begin(file, key, opens);
  }
  const bool was_there = info.st_size != 0 && own == nullptr && (flags & O_TRUNC) == 0;
  if (what.others || (was_there && (reads || keeps_bytes()))) {
    KnownFile* file = Know(rec, name, info, true, what);
    if (file != nullptr && !file->is_whole.exchange(true)) RecordWhole(rec, *file, fd);
  }
  // What it holds is known, or the run's own; where it stands may be other processes' doing.
  if (!writes) return Begin(nullptr, key, opens);
  OwnFile* written = OwnFile::Mark(info, fd);
  return written == nullptr ? nullptr : OpenedOutput::Open(*written, key, opens);
}

void InputFiles::RecordWhole(Recording& rec, KnownFile& file, int fd) {
  const auto size = static_cast<uint64_t>(file.info.st_size);
  const bool keep = keeps_bytes() || file.others;
  if (file.others) kept_of_others_.fetch_add(size, std::memory_order_relaxed);
  RangeBatch batch;
  batch.Begin(file.number);
  constexpr uint64_t kPiece = ReadRuns::kMostDigest;
  auto* piece = size <= kMostWhole ? static_cast<std::byte*>(MapZeroed(kPiece)) : nullptr;
  // A second description: the program's position, and its right to read, are its own business.
  char link[40];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  const int own = piece == nullptr ? -1 : open(link, O_RDONLY | O_CLOEXEC | O_NOCTTY);
  uint64_t at = 0;
  while (own >= 0 && at < size) {
    const ssize_t n = pread(own, piece, std::min(kPiece, size - at), static_cast<off_t>(at));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    const std::span bytes(piece, static_cast<size_t>(n));
    batch.Add(rec, {at, bytes.size(), digest::HashBytes(bytes), bytes}, keep, false);
    at += bytes.size();
  }
  if (at < size) batch.AddLost(rec, at, size - at);
  batch.Flush(rec, false);
  if (own >= 0) close(own);
  if (piece != nullptr) munmap(piece, kPiece);
}

}  // namespace deja::recorder
