#include "format/tail/job_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>

#include "common/runtime/errno_keeper.h"
#include "common/runtime/futex.h"
#include "common/runtime/own_mapping.h"
#include "format/tail/tail.h"

namespace deja::format {
namespace {

void* Map(const std::string& path, size_t bytes, bool create) {
  const int fd = open(path.c_str(), O_RDWR | (create ? O_CREAT : 0) | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd < 0) return MAP_FAILED;
  struct stat info {};
  void* base = MAP_FAILED;
  // Pages that are not there would be a SIGBUS later.
  if (fstat(fd, &info) == 0 && S_ISREG(info.st_mode) && info.st_uid == geteuid() &&
      (create ? fallocate(fd, 0, 0, static_cast<off_t>(bytes)) == 0
              : info.st_size >= static_cast<off_t>(bytes))) {
    base = MapOwn(bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  }
  close(fd);
  return base;
}

}  // namespace

void* MapJobMemory(const std::string& path, size_t bytes, uint64_t magic, bool create) {
  const ScopedSignalBlock no_signals;  // SIGXFSZ
  const ErrnoKeeper keep;
  void* base = Map(path, bytes, create);
  if (base != MAP_FAILED) {
    madvise(base, bytes, MADV_DONTFORK);
    madvise(base, bytes, MADV_DONTDUMP);
    uint64_t seen = 0;
    auto* first = static_cast<std::atomic<uint64_t>*>(base);
    const bool made = create && first->compare_exchange_strong(seen, magic);
    if (!made && first->load() != magic) {
      munmap(base, bytes);
      base = MAP_FAILED;
    }
  }
  return base == MAP_FAILED ? nullptr : base;
}

std::string JobPipesName(const std::string& job_id) {
  return TailNamePrefix(job_id) + "pipes" + kTailNameSuffix;
}

}  // namespace deja::format
