#include "recorder/files/own_files.h"

#define XXH_INLINE_ALL
#include <fcntl.h>
#include <sys/mman.h>
#include <xxhash.h>

#include <new>

#include "recorder/events/mapped_memory.h"

namespace deja::recorder {
namespace {

constexpr size_t kSlots = 1 << 18;
using Slot = std::atomic<OwnFile*>;
constinit std::atomic<Slot*> g_slots{nullptr};

// Numbers of files are used again, so the time of birth counts.
uint64_t KeyOf(const struct stat& info, int fd, const char* path) {
  struct statx more {};
  const int flags = path[0] == '\0' ? AT_EMPTY_PATH : 0;
  if (statx(fd, path, flags, STATX_BTIME, &more) != 0) more.stx_btime = {};
  const uint64_t words[] = {info.st_dev, info.st_ino, static_cast<uint64_t>(more.stx_btime.tv_sec),
                            more.stx_btime.tv_nsec};
  return XXH3_64bits(words, sizeof words) | 1;
}

uint64_t StateOf(const struct stat& info) {
  const uint64_t words[] = {static_cast<uint64_t>(info.st_size),
                            static_cast<uint64_t>(info.st_mtim.tv_sec),
                            static_cast<uint64_t>(info.st_mtim.tv_nsec)};
  return XXH3_64bits(words, sizeof words) | 1;
}

Slot* Slots() {
  Slot* slots = g_slots.load(std::memory_order_acquire);
  if (slots != nullptr) return slots;
  auto* made = static_cast<Slot*>(MapZeroed(kSlots * sizeof(Slot)));
  if (made == nullptr || g_slots.compare_exchange_strong(slots, made)) return made;
  munmap(made, kSlots * sizeof(Slot));
  return slots;
}

}  // namespace

OwnFile* OwnFile::Find(const struct stat& info, int fd, const char* path) {
  Slot* slots = g_slots.load(std::memory_order_acquire);
  if (slots == nullptr) return nullptr;
  const uint64_t key = KeyOf(info, fd, path);
  for (size_t i = 0; i < kSlots; ++i) {
    OwnFile* file = slots[(key + i) % kSlots].load(std::memory_order_acquire);
    if (file == nullptr || file->key_ == key) return file;
  }
  return nullptr;
}

OwnFile* OwnFile::Mark(const struct stat& info, int fd) {
  Slot* slots = Slots();
  if (slots == nullptr) return nullptr;
  const uint64_t key = KeyOf(info, fd, "");
  OwnFile* made = nullptr;
  for (size_t i = 0; i < kSlots; ++i) {
    Slot& slot = slots[(key + i) % kSlots];
    OwnFile* file = slot.load(std::memory_order_acquire);
    if (file == nullptr) {
      if (made == nullptr) {
        made = new (std::nothrow) OwnFile(info, key);
        if (made != nullptr) made->writers_.store(1, std::memory_order_relaxed);
      }
      if (made == nullptr || slot.compare_exchange_strong(file, made)) return made;
    }
    if (file->key_ != key) continue;
    file->writers_.fetch_add(1, std::memory_order_relaxed);
    file->left_.store(0, std::memory_order_relaxed);
    operator delete(made);
    return file;
  }
  operator delete(made);
  return nullptr;
}

bool OwnFile::IsChangedByOthers(const struct stat& now) const {
  const uint64_t left = left_.load(std::memory_order_relaxed);
  return left != 0 && left != StateOf(now);
}

// dup2 has closed the descriptor already, so that it leads elsewhere: how the file is left stays
// unknown then.
void OwnFile::OnClosed(int fd) {
  if (writers_.fetch_sub(1, std::memory_order_relaxed) != 1) return;
  struct stat info {};
  if (fstat(fd, &info) == 0 && info.st_dev == device_ && info.st_ino == inode_)
    left_.store(StateOf(info), std::memory_order_relaxed);
}

}  // namespace deja::recorder
