#include "preload/device.h"

#include <atomic>
#include <new>

#include "format/futex.h"
#include "preload/cuda/cuda_device.h"
#include "preload/spin_lock.h"

namespace deja::preload {
namespace {

// No driver: memory is the CPU's, and what a call has written is there when it returns.
class HostDevice final : public Device {
 public:
  [[nodiscard]] MemoryKind KindOf(const void*) const override { return MemoryKind::kHost; }
  DeviceAnswer Read(const void*, uint64_t, uint64_t, UseBytes, void*) override {
    return DeviceAnswer::kFailed;
  }
  DeviceAnswer Write(void*, uint64_t, uint64_t, MakeBytes, void*) override {
    return DeviceAnswer::kFailed;
  }
  [[nodiscard]] bool IsCaptured(uint64_t) const override { return false; }
  DeviceAnswer ReadAtLaunches(const void*, uint64_t, uint64_t, UseBytes, void*,
                              LaunchUse) override {
    return DeviceAnswer::kFailed;
  }
  DeviceAnswer WriteAtLaunches(void*, uint64_t, uint64_t, MakeBytes, void*) override {
    return DeviceAnswer::kFailed;
  }
  void* Allocate(uint64_t) override { return nullptr; }
  bool Free(void*) override { return false; }
  bool Drain(uint32_t) override { return true; }
};

// Never destroyed: hooks are called after destructors have run.
constinit HostDevice g_host;
constinit std::atomic<Device*> g_device{&g_host};
constinit SpinLock g_making;
alignas(CudaDevice) unsigned char g_cuda[sizeof(CudaDevice)];

struct Waiting {
  std::vector<std::byte> bytes;
  std::atomic<uint32_t> came{0};
};

}  // namespace

Device& TheDevice() {
  return *g_device.load(std::memory_order_acquire);
}

void LookForDevice() {
  if (&TheDevice() != &g_host) return;
  const CudaDriver* driver = FindCudaDriver();
  if (driver == nullptr) return;
  g_making.Lock();
  if (&TheDevice() == &g_host)
    g_device.store(new (g_cuda) CudaDevice(*driver), std::memory_order_release);
  g_making.Unlock();
}

void ForgetDeviceInChild() {
  g_making.Reset();
  g_device.store(&g_host, std::memory_order_release);
}

std::optional<std::vector<std::byte>> ReadAndWait(const void* data, uint64_t bytes,
                                                  uint64_t stream) {
  Waiting waiting;
  const DeviceAnswer answer = TheDevice().Read(
      data, bytes, stream,
      [](DeviceAnswer, std::span<const std::byte> seen, void* context) {
        auto& to = *static_cast<Waiting*>(context);
        to.bytes.assign(seen.begin(), seen.end());
        // The waiting thread may be gone as soon as it sees this; a wake-up of nobody is harmless.
        std::atomic<uint32_t>& came = to.came;
        came.store(1, std::memory_order_release);
        format::FutexWake(came, 1);
      },
      &waiting);
  if (answer != DeviceAnswer::kTaken) return std::nullopt;
  while (waiting.came.load(std::memory_order_acquire) == 0)
    format::FutexWait(waiting.came, 0, 1000);
  if (waiting.bytes.size() != bytes) return std::nullopt;
  return std::move(waiting.bytes);
}

}  // namespace deja::preload
