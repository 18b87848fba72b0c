#include "recorder/files/mapped_inputs.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstring>

#include "preload/engine/mapped_inputs.h"
#include "recorder/core/recording.h"
#include "recorder/files/file_state.h"
#include "recorder/files/opened_input.h"

namespace deja::recorder {
namespace {

struct Mapping {
  uintptr_t begin = 0;
  uintptr_t end = 0;  // begin: the entry is free
  uint64_t offset = 0;
  KnownFile* file = nullptr;
};
constexpr size_t kMappings = 4096;
constinit SpinLock g_lock;
constinit Mapping g_mappings[kMappings] = {};

// Pages of a mapping, as the kernel reports them: eight bytes each.
constexpr uint64_t kPresent = uint64_t{1} << 63;
constexpr uint64_t kSwapped = uint64_t{1} << 62;

// Records what was touched of one mapping.
class Scan {
 public:
  Scan(Recording& rec, const Mapping& mapping, bool in_signal)
      : rec_(rec), mapping_(mapping), file_(*mapping.file), in_signal_(in_signal) {
    batch_.Begin(file_.number, format::FileReadHow::kMapped);
  }
  ~Scan() {
    batch_.Flush(rec_, in_signal_);
    if (fd_ >= 0) close(fd_);
    if (buffer_ != nullptr) munmap(buffer_, kPiece);
  }
  Scan(const Scan&) = delete;
  Scan& operator=(const Scan&) = delete;

  void Run() {
    const int pages = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
    if (pages < 0) return;
    constexpr uintptr_t kPage = SeenPages::kPage;
    std::array<uint64_t, 512> entries;
    for (uintptr_t at = mapping_.begin; at < mapping_.end;) {
      const size_t wanted =
          std::min<size_t>(entries.size(), (mapping_.end - at + kPage - 1) / kPage);
      const ssize_t n = pread(pages, entries.data(), wanted * sizeof(uint64_t),
                              static_cast<off_t>(at / kPage * sizeof(uint64_t)));
      if (n < static_cast<ssize_t>(sizeof(uint64_t))) break;
      const size_t got = static_cast<size_t>(n) / sizeof(uint64_t);
      for (size_t i = 0; i < got; ++i, at += kPage)
        if ((entries[i] & (kPresent | kSwapped)) != 0) Touched(at - mapping_.begin);
    }
    Take();
    close(pages);
  }

 private:
  static constexpr uint64_t kPiece = ReadRuns::kMostDigest;

  // The page `at` bytes into the mapping.
  void Touched(uint64_t at) {
    const auto size = static_cast<uint64_t>(file_.info.st_size);
    const uint64_t begin = mapping_.offset + at;
    const uint64_t end = std::min(begin + SeenPages::kPage, size);
    if (begin >= size || file_.Knows(begin, end)) return;
    if (begin != end_ || end - begin_ > kPiece) {
      Take();
      begin_ = begin;
    }
    end_ = end;
  }

  // Reads and records [begin_, end_).
  void Take() {
    if (begin_ == end_) return;
    const uint32_t segment = file_.Segment();
    const uint64_t size = end_ - begin_;
    if (fd_ == kNotOpened) fd_ = OpenSame();
    size_t done = 0;
    while (fd_ >= 0 && done < size) {
      const ssize_t n = pread(fd_, buffer_ + done, size - done, static_cast<off_t>(begin_ + done));
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) break;
      done += static_cast<size_t>(n);
    }
    if (done == size) {
      const std::span<const std::byte> bytes(buffer_, size);
      batch_.Add(rec_, {begin_, size, digest::HashBytes(bytes), bytes},
                 FilesOf(rec_).inputs.keeps_bytes(), in_signal_);
    } else if (!in_signal_) {
      batch_.AddLost(rec_, begin_, size);
    }
    file_.Learn(begin_, end_, segment);
    begin_ = end_;
  }

  // The file, if it is still as it was when it was opened.
  int OpenSame() {
    if (buffer_ == nullptr) buffer_ = static_cast<std::byte*>(MapZeroed(kPiece));
    char path[PATH_MAX];
    if (buffer_ == nullptr || file_.path.size() >= sizeof path) return -1;
    std::memcpy(path, file_.path.data(), file_.path.size());
    path[file_.path.size()] = '\0';
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    struct stat info {};
    if (fd >= 0 && (fstat(fd, &info) != 0 || !IsSameState(info, file_.info))) {
      close(fd);
      return -1;
    }
    return fd;
  }

  static constexpr int kNotOpened = -2;
  Recording& rec_;
  const Mapping mapping_;
  KnownFile& file_;
  const bool in_signal_;
  RangeBatch batch_;
  int fd_ = kNotOpened;
  std::byte* buffer_ = nullptr;
  uint64_t begin_ = 0;
  uint64_t end_ = 0;
};

void Finish(Recording& rec, Mapping mapping, bool in_signal) {
  // In a child it is the parent's file: the child has to say what it is.
  if (mapping.file->generation != InputGeneration() && !in_signal)
    mapping.file = FilesOf(rec).inputs.Know(rec, mapping.file->path, mapping.file->info, false);
  if (mapping.file == nullptr) return;
  Scan(rec, mapping, in_signal).Run();
}

}  // namespace

void NoteMapping(KnownFile& file, void* memory, size_t size, int64_t offset) {
  const auto begin = reinterpret_cast<uintptr_t>(memory);
  Hold hold(g_lock);
  for (Mapping& mapping : g_mappings) {
    // What was there has been mapped over.
    if (mapping.begin != mapping.end) continue;
    mapping = {begin, begin + size, static_cast<uint64_t>(offset), &file};
    preload::g_mapped_inputs.fetch_add(1, std::memory_order_relaxed);
    return;
  }
}

void FinishMappings(Recording& rec, void* memory, size_t size) {
  const auto begin = reinterpret_cast<uintptr_t>(memory);
  const uintptr_t end = begin + size;
  for (Mapping& mapping : g_mappings) {
    Mapping ended;
    {
      Hold hold(g_lock);
      if (mapping.begin == mapping.end || mapping.begin >= end || mapping.end <= begin) continue;
      ended = mapping;
      ended.begin = std::max(ended.begin, begin);
      ended.end = std::min(ended.end, end);
      ended.offset += ended.begin - mapping.begin;
      // What is left is the part before, or else the one after.
      if (mapping.begin < ended.begin) {
        mapping.end = ended.begin;
      } else {
        mapping.offset += ended.end - mapping.begin;
        mapping.begin = std::min(ended.end, mapping.end);
      }
      if (mapping.begin == mapping.end)
        preload::g_mapped_inputs.fetch_sub(1, std::memory_order_relaxed);
    }
    Finish(rec, ended, false);
  }
}

void FinishAllMappings(Recording& rec, bool in_signal) {
  if (preload::g_mapped_inputs.load(std::memory_order_relaxed) == 0) return;
  for (const Mapping& mapping : g_mappings)
    if (mapping.begin != mapping.end) Finish(rec, mapping, in_signal);
}

}  // namespace deja::recorder
