#include "tests/fakes/cuda/sim_memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <vector>

#include "tests/fakes/cuda/sim_board.h"
#include "tests/fakes/cuda/sim_driver.h"

namespace cusim {
namespace {

constexpr size_t kDeviceBytes = size_t{1} << 30;
constexpr uintptr_t kElsewhere = uintptr_t{1} << 46;  // of registered memory, for devices
constexpr size_t kAlignment = 512;                    // as cuMemAlloc promises at least

struct Range {
  size_t bytes;
  Memory kind;
  int device = 0;
  bool registered = false;
};

struct TakenOut {
  uintptr_t at;
  int device;
  std::vector<char> bytes;
};

struct Space {
  std::mutex mutex;
  std::vector<TakenOut> out;
  std::map<uintptr_t, Range> ranges;  // by first address
  uintptr_t device = 0;               // no access for the processor
  char* backing = nullptr;
  size_t used = 0;  // device memory is given out once: who uses freed memory finds its own bytes

  Space() {
    const int fd = memfd_create("device", MFD_CLOEXEC);
    if (fd < 0 || ftruncate(fd, kDeviceBytes) != 0) std::abort();
    void* reserved =
        mmap(nullptr, kDeviceBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    void* bytes = mmap(nullptr, kDeviceBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (reserved == MAP_FAILED || bytes == MAP_FAILED) std::abort();
    close(fd);
    device = reinterpret_cast<uintptr_t>(reserved);
    backing = static_cast<char*>(bytes);
  }
};

Space& TheSpace() {
  static auto* space = new Space;  // streams outlive static destructors
  return *space;
}

Range RangeOf(const void* address) {
  Space& space = TheSpace();
  const auto at = reinterpret_cast<uintptr_t>(address);
  std::lock_guard hold(space.mutex);
  auto it = space.ranges.upper_bound(at);
  if (it != space.ranges.begin() && at - (--it)->first < it->second.bytes) return it->second;
  return {0, Memory::kPageable, 0};
}

}  // namespace

void* Allocate(Memory kind, size_t bytes, int device) {
  Space& space = TheSpace();
  std::lock_guard hold(space.mutex);
  uintptr_t at = 0;
  if (kind == Memory::kDevice) {
    const size_t size = (bytes + kAlignment - 1) / kAlignment * kAlignment;
    if (size > kDeviceBytes - space.used || !Reserve(OnBoard(device), bytes)) return nullptr;
    at = space.device + space.used;
    space.used += size;
  } else {
    void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return nullptr;
    at = reinterpret_cast<uintptr_t>(memory);
  }
  space.ranges[at] = {bytes, kind, device};
  return reinterpret_cast<void*>(at);
}

bool Free(void* memory) {
  Space& space = TheSpace();
  std::lock_guard hold(space.mutex);
  const auto found = space.ranges.find(reinterpret_cast<uintptr_t>(memory));
  if (found == space.ranges.end()) return false;
  if (found->second.kind == Memory::kDevice)
    Release(OnBoard(found->second.device), found->second.bytes);
  space.ranges.erase(found);
  return true;
}

bool Register(void* memory, size_t bytes) {
  Space& space = TheSpace();
  std::lock_guard hold(space.mutex);
  return space.ranges
      .try_emplace(reinterpret_cast<uintptr_t>(memory), Range{bytes, Memory::kPinned, 0, true})
      .second;
}

Memory KindOf(const void* address) {
  return RangeOf(address).kind;
}

int DeviceOf(const void* address) {
  return RangeOf(address).device;
}

void* Backing(const void* address) {
  Space& space = TheSpace();
  const auto at = reinterpret_cast<uintptr_t>(address);
  if (at >= space.device && at - space.device < kDeviceBytes)
    return space.backing + (at - space.device);
  return const_cast<void*>(address);
}

uintptr_t DeviceAddressOf(const void* host) {
  const Range range = RangeOf(host);
  if (range.kind != Memory::kPinned) return 0;
  return reinterpret_cast<uintptr_t>(host) ^ (range.registered ? kElsewhere : 0);
}

void* SeenByDevice(uintptr_t address) {
  void* host = reinterpret_cast<void*>(address ^ kElsewhere);
  if (RangeOf(host).registered) return host;
  void* same = reinterpret_cast<void*>(address);
  const Range range = RangeOf(same);
  return range.kind == Memory::kPageable || range.registered ? nullptr : Backing(same);
}

void TakeMemoryOut() {
  Space& space = TheSpace();
  std::lock_guard hold(space.mutex);
  for (const auto& [at, range] : space.ranges) {
    if (range.kind != Memory::kDevice) continue;
    char* bytes = space.backing + (at - space.device);
    space.out.push_back({at, range.device, {bytes, bytes + range.bytes}});
    std::memset(bytes, 0xdb, range.bytes);
    Release(OnBoard(range.device), range.bytes);
  }
}

bool BringMemoryBack() {
  Space& space = TheSpace();
  std::lock_guard hold(space.mutex);
  for (size_t i = 0; i < space.out.size(); ++i) {
    if (Reserve(OnBoard(space.out[i].device), space.out[i].bytes.size())) continue;
    while (i-- > 0) Release(OnBoard(space.out[i].device), space.out[i].bytes.size());
    return false;
  }
  for (const TakenOut& part : space.out)
    std::memcpy(space.backing + (part.at - space.device), part.bytes.data(), part.bytes.size());
  space.out.clear();
  return true;
}

}  // namespace cusim
