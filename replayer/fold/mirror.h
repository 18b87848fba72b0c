// Mirror: the device memory that a group's operations use, where the processor can reach it. What
// lies side by side there does so here: an operation may read what another one of its group has
// written.
//
// Add what is used, Make, then ask for addresses. One thread at a time.
#ifndef DEJA_REPLAYER_FOLD_MIRROR_H_
#define DEJA_REPLAYER_FOLD_MIRROR_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "preload/calls/buffers.h"
#include "preload/cuda/device.h"

namespace deja::replayer {

class Mirror {
 public:
  // Memory of a device; other memory is left out.
  void Add(const preload::BufferUse& use) {
    if (use.empty() || preload::IsHostMemory(use.data)) return;
    const auto begin = reinterpret_cast<uintptr_t>(use.data);
    parts_.push_back({begin, begin + use.bytes, {}});
  }
  // After the last Add.
  void Make() {
    std::sort(parts_.begin(), parts_.end(),
              [](const Part& a, const Part& b) { return a.begin < b.begin; });
    std::vector<Part> merged;
    for (Part& part : parts_) {
      if (!merged.empty() && part.begin < merged.back().end)
        merged.back().end = std::max(merged.back().end, part.end);
      else
        merged.push_back(std::move(part));
    }
    parts_ = std::move(merged);
    for (Part& part : parts_) part.bytes.resize(part.end - part.begin);
  }
  // The host address of memory that was added; other memory, which the processor reaches, itself.
  [[nodiscard]] std::byte* At(const void* data) {
    const auto address = reinterpret_cast<uintptr_t>(data);
    for (Part& part : parts_)
      if (address >= part.begin && address < part.end)
        return part.bytes.data() + (address - part.begin);
    return static_cast<std::byte*>(const_cast<void*>(data));
  }

 private:
  struct Part {
    uintptr_t begin;
    uintptr_t end;
    std::vector<std::byte> bytes;
  };
  std::vector<Part> parts_;
};

}  // namespace deja::replayer

#endif  // DEJA_REPLAYER_FOLD_MIRROR_H_
