// Shared memory and semaphores with names: files below /dev/shm that the C library opens by calls
// of its own. Where the engine has another place for them (a replay's overlay) they are opened
// here.
#include <fcntl.h>
#include <limits.h>
#include <semaphore.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "common/runtime/errno_keeper.h"
#include "common/runtime/spin_lock.h"
#include "preload/hooks/export.h"
#include "preload/hooks/files/paths.h"
#include "preload/meet/shared_semaphores.h"
#include "preload/symbols/real_symbols.h"

namespace deja::preload {
namespace {

constinit RealFn<int (*)(const char*, int, mode_t)> real_open{"open"};
constinit RealFn<int (*)(const char*)> real_unlink{"unlink"};
constinit RealFn<int (*)(const char*, int, mode_t)> real_shm_open{"shm_open"};
constinit RealFn<int (*)(const char*)> real_shm_unlink{"shm_unlink"};
constinit RealFn<sem_t* (*)(const char*, int, mode_t, unsigned)> real_sem_open{"sem_open"};
constinit RealFn<int (*)(const char*)> real_sem_unlink{"sem_unlink"};
constinit RealFn<int (*)(sem_t*)> real_sem_close{"sem_close"};

// The file that a name stands for, and where the engine wants it.
class SharedName {
 public:
  SharedName(const char* prefix, const char* name, FileUse use) : own_(Join(prefix, name), use) {}
  // True if the C library is to do it, with the name as it is: also with one that it refuses.
  [[nodiscard]] bool IsReal() const { return path_[0] == 0 || own_.get() == path_; }
  [[nodiscard]] bool refused() const { return own_.refused(); }
  [[nodiscard]] const char* path() const { return own_.get(); }

 private:
  const char* Join(const char* prefix, const char* name) {
    while (name != nullptr && *name == '/') ++name;
    size_t size = name != nullptr ? strnlen(name, NAME_MAX) : 0;
    bool is_name = size > 0 && size < NAME_MAX - 4 && std::memchr(name, '/', size) == nullptr;
    if (!is_name) return path_;
    size_t start = std::strlen(prefix);
    std::memcpy(path_, prefix, start);
    std::memcpy(path_ + start, name, size + 1);
    return path_;
  }

  char path_[NAME_MAX + 32] = {};
  MappedPath own_;
};

constexpr const char* kMemory = "/dev/shm/";
constexpr const char* kSemaphore = "/dev/shm/sem.";

FileUse UseOf(int flags) {
  if ((flags & O_CREAT) != 0) return FileUse::kCreate;
  return (flags & O_ACCMODE) != O_RDONLY ? FileUse::kWrite : FileUse::kRead;
}

// Semaphores that were opened here: opening one twice gives the same address.
struct OpenSemaphore {
  dev_t device;
  ino_t inode;
  sem_t* semaphore;
  uint32_t opened;  // times; 0: the entry is free
};
constexpr size_t kMaxSemaphores = 1024;
constinit OpenSemaphore g_semaphores[kMaxSemaphores] = {};
constinit SpinLock g_lock;

sem_t* Map(int fd) {
  struct stat st;
  if (fstat(fd, &st) != 0) return SEM_FAILED;
  void* fresh = mmap(nullptr, sizeof(sem_t), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (fresh == MAP_FAILED) return SEM_FAILED;
  auto* semaphore = static_cast<sem_t*>(fresh);
  OpenSemaphore* entry = nullptr;
  g_lock.Lock();
  for (OpenSemaphore& candidate : g_semaphores) {
    const bool is_it =
        candidate.opened != 0 && candidate.inode == st.st_ino && candidate.device == st.st_dev;
    if (is_it || (candidate.opened == 0 && entry == nullptr)) entry = &candidate;
    if (is_it) break;
  }
  if (entry != nullptr) {
    if (entry->opened == 0) *entry = {st.st_dev, st.st_ino, semaphore, 0};
    ++entry->opened;
    semaphore = entry->semaphore;
  }
  g_lock.Unlock();
  if (semaphore != fresh || entry == nullptr) munmap(fresh, sizeof(sem_t));
  if (entry == nullptr) {
    errno = ENOMEM;
    return SEM_FAILED;
  }
  return semaphore;
}

// Under another name first, so that no process sees it half made.
int CreateSemaphore(const char* path, mode_t mode, unsigned value) {
  if (value > SEM_VALUE_MAX) {
    errno = EINVAL;
    return -1;
  }
  char fresh[PATH_MAX + 16];
  const size_t size = strnlen(path, PATH_MAX);
  std::memcpy(fresh, path, size);
  std::memcpy(fresh + size, ".new", 5);
  sem_t semaphore = {};
  sem_init(&semaphore, 1, value);
  real_unlink(fresh);
  int fd = real_open(fresh, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, mode);
  if (fd < 0) return -1;
  // As large as what lies beside it (shared_semaphores.h): a file system may clear what follows a
  // file's end.
  if (write(fd, &semaphore, sizeof semaphore) != sizeof semaphore ||
      ftruncate(fd, SharedSemaphores::kBytes) != 0 || link(fresh, path) != 0) {
    const ErrnoKeeper keep;
    close(fd);
    fd = -1;
  }
  const ErrnoKeeper keep;
  real_unlink(fresh);
  return fd;
}

sem_t* Open(const char* path, int flags, mode_t mode, unsigned value) {
  Guard guard;
  // Another process may make it, or remove it, between the two steps.
  for (int i = 0; i < 100; ++i) {
    int fd = -1;
    if ((flags & (O_CREAT | O_EXCL)) != (O_CREAT | O_EXCL))
      fd = real_open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW, 0);
    if (fd < 0 && (flags & O_CREAT) != 0) {
      fd = CreateSemaphore(path, mode, value);
      if (fd < 0 && errno == EEXIST && (flags & O_EXCL) == 0) continue;
    }
    if (fd < 0) return SEM_FAILED;
    sem_t* semaphore = Map(fd);
    const ErrnoKeeper keep;
    close(fd);
    return semaphore;
  }
  return SEM_FAILED;
}

// True if `semaphore` was opened here.
bool Close(sem_t* semaphore) {
  bool known = false;
  bool last = false;
  g_lock.Lock();
  for (OpenSemaphore& entry : g_semaphores) {
    if (entry.opened == 0 || entry.semaphore != semaphore) continue;
    known = true;
    last = --entry.opened == 0;
    break;
  }
  g_lock.Unlock();
  if (last) munmap(semaphore, sizeof(sem_t));
  return known;
}

}  // namespace
}  // namespace deja::preload

using namespace deja::preload;  // NOLINT: the hooks below are this file's only names

DEJA_EXPORT int shm_open(const char* name, int flags, mode_t mode) {
  SharedName shared(kMemory, name, UseOf(flags));
  if (shared.refused()) return -1;
  if (shared.IsReal()) return real_shm_open(name, flags, mode);
  return real_open(shared.path(), flags | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, mode);
}

DEJA_EXPORT int shm_unlink(const char* name) {
  SharedName shared(kMemory, name, FileUse::kRemove);
  if (shared.refused()) return -1;
  return shared.IsReal() ? real_shm_unlink(name) : real_unlink(shared.path());
}

DEJA_EXPORT sem_t* sem_open(const char* name, int flags, ...) noexcept {
  mode_t mode = 0;
  unsigned value = 0;
  if ((flags & O_CREAT) != 0) {
    va_list list;
    va_start(list, flags);
    mode = va_arg(list, mode_t);
    value = va_arg(list, unsigned);
    va_end(list);
  }
  SharedName shared(kSemaphore, name, (flags & O_CREAT) != 0 ? FileUse::kCreate : FileUse::kWrite);
  if (shared.refused()) return SEM_FAILED;
  sem_t* semaphore = shared.IsReal() ? real_sem_open(name, flags, mode, value)
                                     : Open(shared.path(), flags, mode, value);
  if (semaphore != SEM_FAILED) SharedSemaphores::Add(semaphore, name);
  return semaphore;
}

DEJA_EXPORT int sem_unlink(const char* name) noexcept {
  SharedName shared(kSemaphore, name, FileUse::kRemove);
  if (shared.refused()) return -1;
  return shared.IsReal() ? real_sem_unlink(name) : real_unlink(shared.path());
}

DEJA_EXPORT int sem_close(sem_t* semaphore) noexcept {
  SharedSemaphores::Remove(semaphore);  // before another mapping can be there
  return Close(semaphore) ? 0 : real_sem_close(semaphore);
}
