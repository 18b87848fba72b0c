#include "recorder/files/machine_files.h"

#define XXH_INLINE_ALL
#include <dirent.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <xxhash.h>

#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "api/libc_table.h"
#include "common/runtime/errno_keeper.h"
#include "digest/digest.h"
#include "preload/files/machine_files.h"
#include "preload/process/threads.h"
#include "recorder/core/recording.h"
#include "recorder/events/mapped_memory.h"

namespace deja::recorder {

using api::LibcApi;
using preload::FileUse;

namespace {

// /proc/cpuinfo has 1.5 KiB for each CPU.
constexpr size_t kMostContent = 4 << 20;
constexpr size_t kMostInline = 3 << 10;

// What one file said.
struct Answer {
  LibcApi api = LibcApi::kopen;
  int error = 0;
  char* data = nullptr;  // kMostContent bytes, mapped; the name, a zero, the content
  size_t name = 0;       // the name with its zero
  size_t size = 0;       // of everything
};

bool ReadFile(int fd, Answer& answer) {
  for (;;) {
    const ssize_t n = read(fd, answer.data + answer.size, kMostContent - answer.size);
    if (n == 0) return true;
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      answer.error = errno;
      return true;
    }
    answer.size += static_cast<size_t>(n);
    if (answer.size == kMostContent) return false;
  }
}

struct KernelEntry {
  uint64_t inode;
  int64_t offset;
  uint16_t size;
  uint8_t type;
};
constexpr size_t kEntryName = 19;  // where it begins: the structure has no padding at its end

bool ListFolder(int fd, Answer& answer) {
  alignas(8) char block[4096];
  for (;;) {
    const long n = syscall(SYS_getdents64, fd, block, sizeof block);
    if (n <= 0) return n == 0;
    for (long at = 0; at < n;) {
      KernelEntry entry;
      std::memcpy(&entry, block + at, sizeof entry);
      const char* name = block + at + kEntryName;
      at += entry.size;
      if (std::strcmp(name, ".") == 0 || std::strcmp(name, "..") == 0) continue;
      const size_t length = std::strlen(name) + 1;
      if (answer.size + 1 + length > kMostContent) return false;
      if (entry.type == DT_DIR) answer.data[answer.size++] = '/';
      std::memcpy(answer.data + answer.size, name, length);
      answer.size += length;
    }
  }
}

// False if this cannot be recorded as it is.
bool Ask(int dirfd, const char* path, FileUse use, Answer& answer) {
  if (use == FileUse::kLook) {
    answer.api = LibcApi::kaccess;
    struct stat info;
    if (fstatat(dirfd, path, &info, 0) != 0) {
      answer.error = errno;
    } else if (S_ISDIR(info.st_mode)) {
      answer.data[answer.size++] = '/';
    }
    return true;
  }
  const int fd = openat(dirfd, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (fd < 0) {
    answer.error = errno;
    return true;
  }
  struct stat info;
  bool ok = fstat(fd, &info) == 0;
  if (ok && S_ISDIR(info.st_mode)) {
    answer.api = LibcApi::kopendir;
    ok = ListFolder(fd, answer);
  } else if (ok) {
    ok = S_ISREG(info.st_mode) && ReadFile(fd, answer);
  }
  close(fd);
  return ok;
}

// A copy for the program to open; `path` itself if there is no memory for one.
const char* LendCopy(const Answer& answer, const char* path, std::span<char> buffer) {
  const int fd = memfd_create("deja", MFD_CLOEXEC);
  if (fd < 0) return path;
  const size_t size = answer.size - answer.name;
  if (write(fd, answer.data + answer.name, size) != static_cast<ssize_t>(size)) {
    close(fd);
    return path;
  }
  snprintf(buffer.data(), buffer.size(), "/proc/self/fd/%d", fd);
  return buffer.data();
}

void Write(Recording& rec, const Answer& answer, uint64_t key, uint32_t opens) {
  format::Input input;
  input.api = static_cast<uint32_t>(answer.api);
  input.key = key;
  input.result = opens;
  input.error = static_cast<uint32_t>(answer.error);
  input.data = {answer.data, answer.size};
  if (answer.size > kMostInline) {
    const auto content = std::as_bytes(std::span(answer.data, answer.size).subspan(answer.name));
    input.data = {answer.data, answer.name};
    input.hash = digest::HashBytes(content);
    input.segment = rec.KeepPayload(input.hash, content, 1).segment;
  }
  rec.writer.Write(input);
  rec.RelieveStaging();
}

}  // namespace

bool MachineRecorder::IsNews(uint64_t key, uint64_t content, uint32_t& opens) {
  if (key == 0) key = 1;
  Hold hold(lock_);
  for (size_t i = 0; i < kSeen; ++i) {
    Seen& seen = seen_[(key + i) % kSeen];
    if (seen.key != 0 && seen.key != key) continue;
    const bool news = seen.key == 0 || seen.content != content;
    seen.key = key;
    seen.content = content;
    opens = seen.opens++;
    return news;
  }
  opens = 0;  // more files than a program looks at: each open is an event
  return true;
}

const char* MachineRecorder::Map(Recording& rec, int dirfd, const char* path, FileUse use,
                                 std::span<char> buffer) {
  if (use != FileUse::kRead && use != FileUse::kLook) return path;
  char name_buffer[PATH_MAX];
  const std::string_view name =
      preload::MachineName(dirfd, path, {static_cast<int>(rec.pid()), 0, {}}, name_buffer);
  const preload::MachineFile* file = name.empty() ? nullptr : preload::FindMachineFile(name);
  if (file == nullptr) return path;

  const ErrnoKeeper keep;
  Answer answer;
  answer.data = static_cast<char*>(MapZeroed(kMostContent));
  if (answer.data == nullptr) return path;
  std::memcpy(answer.data, name.data(), name.size());
  answer.name = name.size() + 1;
  answer.size = answer.name;
  const char* mapped = path;
  if (Ask(dirfd, path, use, answer)) {
    const uint64_t key = preload::MachineKey(name);
    const uint64_t question[] = {key, static_cast<uint64_t>(answer.api), preload::Self().index};
    const auto seed = static_cast<uint64_t>(answer.error);
    const uint64_t content = XXH3_64bits_withSeed(answer.data, answer.size, seed);
    uint32_t opens = 0;
    if (IsNews(XXH3_64bits(question, sizeof question), content, opens))
      Write(rec, answer, key, opens);
    if (file->is_entropy && answer.api == LibcApi::kopen && answer.error == 0)
      mapped = LendCopy(answer, path, buffer);
  }
  munmap(answer.data, kMostContent);
  return mapped;
}

void MachineRecorder::Release(const char* mapped) {
  constexpr std::string_view kLent = "/proc/self/fd/";
  if (std::strncmp(mapped, kLent.data(), kLent.size()) != 0) return;
  close(static_cast<int>(std::strtol(mapped + kLent.size(), nullptr, 10)));
}

}  // namespace deja::recorder
