#include "common/os/activity_count.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/os/folder_entries.h"
#include "common/runtime/own_mapping.h"

namespace deja {
namespace {

using Count = std::atomic<uint64_t>;
static_assert(sizeof(Count) == sizeof(uint64_t) && Count::is_always_lock_free);

std::string FolderOf(const std::string& scratch) {
  return scratch + kActivityFolder;
}

}  // namespace

Count* MapActivityCount(const std::string& scratch) {
  const std::string folder = FolderOf(scratch);
  mkdir(folder.c_str(), 0777);
  const std::string path = folder + std::to_string(syscall(SYS_getpid));
  const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (fd < 0) return nullptr;
  void* memory = MAP_FAILED;
  if (ftruncate(fd, sizeof(Count)) == 0)
    memory = MapOwn(sizeof(Count), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  close(fd);
  return memory == MAP_FAILED ? nullptr : static_cast<Count*>(memory);
}

uint64_t SumOfActivity(const std::string& scratch) {
  uint64_t sum = 0;
  ForEachEntry(FolderOf(scratch).c_str(), [&](const char* name, int in) {
    const int fd = openat(in, name, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return true;
    uint64_t count = 0;
    if (pread(fd, &count, sizeof count, 0) == static_cast<ssize_t>(sizeof count)) sum += count;
    close(fd);
    return true;
  });
  return sum;
}

}  // namespace deja
