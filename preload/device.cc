#include "preload/device.h"

#include <cstring>

namespace deja::preload {
namespace {

// Memory is the CPU's, and what a call has written is there when it returns.
class HostDevice final : public Device {
 public:
  [[nodiscard]] MemoryKind KindOf(const void*) const override { return MemoryKind::kHost; }
  [[nodiscard]] bool CpuReadable(MemoryKind kind) const override {
    return kind == MemoryKind::kHost;
  }
  bool WithBytes(const void* data, uint64_t bytes, uint64_t, UseBytes use, void* context) override {
    use({static_cast<const std::byte*>(data), bytes}, context);
    return true;
  }
  bool Fill(void* data, std::span<const std::byte> bytes, uint64_t) override {
    if (!bytes.empty()) std::memcpy(data, bytes.data(), bytes.size());
    return true;
  }
};

// Never destroyed: hooks are called after destructors have run.
constinit HostDevice g_host;

}  // namespace

Device& TheDevice() {
  return g_host;
}

}  // namespace deja::preload
