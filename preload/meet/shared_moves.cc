#include "preload/meet/shared_moves.h"

#include <atomic>

namespace deja::preload {
namespace {

constexpr size_t kCounters = 1 << 14;
constinit std::atomic<uint32_t> g_opens[kCounters] = {};

}  // namespace

uint32_t CountOpen(uint64_t path_key) {
  return g_opens[(path_key >> 1) % kCounters].fetch_add(1, std::memory_order_relaxed);
}

}  // namespace deja::preload
