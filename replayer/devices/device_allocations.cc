#include "replayer/devices/device_allocations.h"

#include <map>
#include <mutex>

#include "replayer/devices/driver_hooks.h"

namespace deja::replayer {
namespace {

class Allocations {
 public:
  void Add(uint64_t name, uint64_t bytes) {
    std::lock_guard<std::mutex> lock(mutex_);
    bytes_[name] = bytes;
  }
  uint64_t Remove(uint64_t name) {
    std::lock_guard<std::mutex> lock(mutex_);
    const auto it = bytes_.find(name);
    if (it == bytes_.end()) return 0;
    const uint64_t bytes = it->second;
    bytes_.erase(it);
    return bytes;
  }

 private:
  std::mutex mutex_;
  std::map<uint64_t, uint64_t> bytes_;
};

Allocations& TheAllocations() {
  static auto* all = new Allocations;  // programs free memory in static destructors
  return *all;
}

}  // namespace

Turns::Shortage DescribeShortage(uint64_t bytes, int device) {
  static const auto get_info = Real<CUresult (*)(size_t*, size_t*)>("cuMemGetInfo_v2");
  Turns::Shortage shortage{bytes, device == kCurrentDevice ? CurrentDevice() : device, 0, 0};
  size_t free_bytes = 0;
  size_t total_bytes = 0;
  if (get_info != nullptr && get_info(&free_bytes, &total_bytes) == CUDA_SUCCESS) {
    shortage.free_bytes = free_bytes;
    shortage.total_bytes = total_bytes;
  }
  return shortage;
}

int CurrentDevice() {
  static const auto get_device = Real<CUresult (*)(CUdevice*)>("cuCtxGetDevice");
  CUdevice device = 0;
  return get_device != nullptr && get_device(&device) == CUDA_SUCCESS ? device : 0;
}

void NoteAllocation(uint64_t name, uint64_t bytes) {
  Turns* turns = Turns::Get();
  if (turns == nullptr) return;
  preload::Guard guard;
  turns->Uses(CurrentDevice());
  TheAllocations().Add(name, bytes);
  turns->Holds(static_cast<int64_t>(bytes));
}

uint64_t ForgetAllocation(uint64_t name) {
  Turns* turns = Turns::Get();
  if (turns == nullptr) return 0;
  const uint64_t bytes = TheAllocations().Remove(name);
  turns->Holds(-static_cast<int64_t>(bytes));
  return bytes;
}

}  // namespace deja::replayer
