#include "preload/cuda/device.h"

#include <algorithm>
#include <atomic>
#include <climits>
#include <cstring>
#include <new>

#include "common/runtime/futex.h"
#include "common/runtime/spin_lock.h"
#include "preload/cuda/cuda_device.h"

namespace deja::preload {
namespace {

// No driver: memory is the CPU's, and what a call has written is there when it returns.
class HostDevice final : public Device {
 public:
  [[nodiscard]] MemoryKind KindOf(const void*) const override { return MemoryKind::kHost; }
  DeviceAnswer Read(const void*, uint64_t, uint64_t, UseBytes, void*) override {
    return DeviceAnswer::kFailed;
  }
  DeviceAnswer Notify(uint64_t, UseBytes, void*) override { return DeviceAnswer::kFailed; }
  DeviceAnswer Digest(const void*, uint64_t, uint32_t, uint64_t, UseDigest, void*) override {
    return DeviceAnswer::kFailed;
  }
  void PrepareDigests() override {}
  DeviceAnswer Write(void*, uint64_t, uint64_t, MakeBytes, void*) override {
    return DeviceAnswer::kFailed;
  }
  [[nodiscard]] bool IsCaptured(uint64_t) const override { return false; }
  DeviceAnswer ReadAtLaunches(const void*, uint64_t, uint64_t, uint64_t, UseBytes, void*,
                              LaunchUse) override {
    return DeviceAnswer::kFailed;
  }
  DeviceAnswer WriteAtLaunches(void*, uint64_t, uint64_t, uint64_t, MakeBytes, void*) override {
    return DeviceAnswer::kFailed;
  }
  void* Allocate(uint64_t) override { return nullptr; }
  bool Free(void*) override { return false; }
  void TakeWhatCame(uint32_t) override {}
  Gate* NewGate() override { return nullptr; }
  DeviceAnswer Hold(uint64_t, Gate&) override { return DeviceAnswer::kFailed; }
  bool Drain(uint32_t) override { return true; }
};

// Never destroyed: hooks are called after destructors have run.
constinit HostDevice g_host;
constinit std::atomic<Device*> g_device{&g_host};
constinit SpinLock g_making;
alignas(CudaDevice) unsigned char g_cuda[sizeof(CudaDevice)];

constinit std::atomic<bool> g_device_digests{true};

constexpr uint64_t kLegacyDefaultStream = 0;
constexpr uint64_t kShownPiece = uint64_t{64} << 20;

// What a thread of Deja's brings, and another one waits for.
template <typename T>
struct Waiting {
  std::optional<T> value;
  std::atomic<uint32_t> came{0};

  void Bring() {
    // The waiting thread may be gone as soon as it sees this; a wake-up without a sleeper is
    // harmless.
    std::atomic<uint32_t>& there = came;
    there.store(1, std::memory_order_release);
    FutexWake(there, 1);
  }
  std::optional<T> Wait() {
    while (came.load(std::memory_order_acquire) == 0) FutexWait(came, 0, 1000);
    return std::move(value);
  }
};

}  // namespace

void Gate::Open() {
  open.store(1, std::memory_order_release);
  FutexWake(open, INT_MAX);
}

Device& TheDevice() {
  return *g_device.load(std::memory_order_acquire);
}

void LookForDevice() {
  if (&TheDevice() != &g_host) return;
  const CudaDriver* driver = FindCudaDriver();
  if (driver == nullptr) return;
  g_making.Lock();
  if (&TheDevice() == &g_host)
    g_device.store(new (g_cuda) CudaDevice(*driver, g_device_digests), std::memory_order_release);
  g_making.Unlock();
}

void ForgetDeviceInChild() {
  g_device.store(&g_host, std::memory_order_release);
}

void SetDevicePatience(uint32_t ms) {
  BufferPool::SetPatience(ms);
}

void UseDeviceDigests(bool use) {
  g_device_digests = use;
}

std::optional<std::vector<std::byte>> ReadAndWait(const void* data, uint64_t bytes,
                                                  uint64_t stream) {
  using Bytes = std::vector<std::byte>;
  Waiting<Bytes> waiting;
  const DeviceAnswer answer = TheDevice().Read(
      data, bytes, stream,
      [](DeviceAnswer how, std::span<const std::byte> seen, void* context) {
        auto& to = *static_cast<Waiting<Bytes>*>(context);
        if (how == DeviceAnswer::kTaken) to.value.emplace(seen.begin(), seen.end());
        to.Bring();
      },
      &waiting);
  if (answer != DeviceAnswer::kTaken) return std::nullopt;
  return waiting.Wait();
}

std::optional<digest::TensorDigest> DigestAndWait(const void* data, uint64_t bytes, uint32_t dtype,
                                                  uint64_t stream) {
  Waiting<digest::TensorDigest> waiting;
  const DeviceAnswer answer = TheDevice().Digest(
      data, bytes, dtype, stream,
      [](DeviceAnswer how, const digest::TensorDigest& digest, void* context) {
        auto& to = *static_cast<Waiting<digest::TensorDigest>*>(context);
        if (how == DeviceAnswer::kTaken) to.value = digest;
        to.Bring();
      },
      &waiting);
  if (answer != DeviceAnswer::kTaken) return std::nullopt;
  return waiting.Wait();
}

std::optional<std::vector<std::byte>> ReadShown(const void* data, uint64_t bytes) {
  std::vector<std::byte> whole;
  whole.reserve(bytes);
  const auto* from = static_cast<const std::byte*>(data);
  for (uint64_t at = 0; at < bytes; at += kShownPiece) {
    const auto piece =
        ReadAndWait(from + at, std::min(kShownPiece, bytes - at), kLegacyDefaultStream);
    if (!piece) return std::nullopt;
    whole.insert(whole.end(), piece->begin(), piece->end());
  }
  return whole;
}

bool WriteShown(void* data, std::span<const std::byte> bytes) {
  auto* to = static_cast<std::byte*>(data);
  for (uint64_t at = 0; at < bytes.size(); at += kShownPiece) {
    auto piece = bytes.subspan(at, std::min<uint64_t>(kShownPiece, bytes.size() - at));
    const auto make = [](std::span<std::byte> out, void* context) {
      std::memcpy(out.data(), static_cast<decltype(piece)*>(context)->data(), out.size());
      return true;
    };
    if (TheDevice().Write(to + at, piece.size(), kLegacyDefaultStream, make, &piece) !=
        DeviceAnswer::kTaken)
      return false;
  }
  // Streams that do not wait for the default stream find it there.
  return bytes.empty() || ReadAndWait(data, 1, kLegacyDefaultStream).has_value();
}

}  // namespace deja::preload
