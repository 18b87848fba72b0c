#include "recorder/nccl/comm_registry.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace deja::recorder {

Communicator* CommRegistry::Find(uint64_t handle) {
  if (handle == 0) return nullptr;
  uint32_t number = by_handle_.Find(handle);
  return number == KeyMap::kMissing ? nullptr : &comms_[number];
}

Communicator* CommRegistry::Add(uint64_t handle, uint64_t hash, int rank, int nranks) {
  uint32_t number = comms_.Add();
  if (number == StableArray<Communicator>::kMissing) return nullptr;
  Communicator& comm = comms_[number];
  comm.number = number;
  comm.hash = hash;
  comm.rank = rank;
  comm.nranks = nranks;
  by_handle_.Set(handle, number);
  return &comm;
}

uint64_t HashOfIds(std::span<const std::byte> ids) {
  return XXH3_64bits(ids.data(), ids.size());
}

uint64_t HashOfChild(uint64_t parent_hash, uint32_t api, uint32_t call, int64_t color) {
  struct {
    uint64_t parent_hash;
    uint32_t api;
    uint32_t call;
    int64_t color;
  } key{parent_hash, api, call, color};
  return XXH3_64bits(&key, sizeof key);
}

}  // namespace deja::recorder
