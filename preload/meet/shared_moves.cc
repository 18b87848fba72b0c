#include "preload/meet/shared_moves.h"

#include <atomic>

namespace deja::preload {
namespace {

// A path keeps the place that it has got. A replay opens files that the recorder does not count
// (modules of Python), so paths must not be counted together.
struct Opened {
  std::atomic<uint64_t> path_key;  // 0: free
  std::atomic<uint32_t> opens;
};
constexpr size_t kPaths = 1 << 14;
constexpr size_t kMostLooks = 256;
constinit Opened g_opened[kPaths] = {};

}  // namespace

uint32_t CountOpen(uint64_t path_key) {
  for (size_t look = 0; look < kMostLooks; ++look) {
    Opened& path = g_opened[((path_key >> 1) + look) % kPaths];
    uint64_t found = path.path_key.load(std::memory_order_relaxed);
    const bool is_new = found == 0 && path.path_key.compare_exchange_strong(
                                          found, path_key, std::memory_order_relaxed);
    if (is_new || found == path_key) return path.opens.fetch_add(1, std::memory_order_relaxed);
  }
  return 0;
}

}  // namespace deja::preload
