#include "common/os/turn_area.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <climits>

#include "common/runtime/futex.h"
#include "common/runtime/own_mapping.h"

namespace deja {

Result<TurnArea> TurnArea::Create(const std::string& path, uint32_t ranks) {
  const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd < 0) return FailErrno("making: " + path, errno);
  if (ftruncate(fd, static_cast<off_t>(sizeof(TurnCell)) * (ranks + 1)) != 0) {
    const int error = errno;
    close(fd);
    return FailErrno("making: " + path, error);
  }
  return Map(fd, path);
}

Result<TurnArea> TurnArea::Open(const std::string& path) {
  const int fd = open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (fd < 0) return FailErrno("opening: " + path, errno);
  return Map(fd, path);
}

Result<TurnArea> TurnArea::Map(int fd, const std::string& path) {
  struct stat info {};
  const bool known = fstat(fd, &info) == 0;
  const auto size = static_cast<size_t>(info.st_size);
  void* memory = MAP_FAILED;
  if (known) errno = EINVAL;  // it is too short
  if (known && size >= 2 * sizeof(TurnCell))
    memory = MapOwn(size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  const int error = errno;
  close(fd);
  if (memory == MAP_FAILED) return FailErrno("mapping: " + path, error);
  TurnArea area;
  area.cells_ = static_cast<TurnCell*>(memory);
  area.ranks_ = static_cast<uint32_t>(size / sizeof(TurnCell)) - 1;
  return area;
}

void TurnArea::Ring(std::atomic<uint32_t>& bell) {
  bell.fetch_add(1, std::memory_order_seq_cst);
  FutexWake(bell, INT_MAX, FutexScope::kShared);
}

void TurnArea::WaitFor(std::atomic<uint32_t>& bell, uint32_t seen, uint32_t limit_ms) {
  FutexWait(bell, seen, limit_ms, FutexScope::kShared);
}

}  // namespace deja
