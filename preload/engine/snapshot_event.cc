#include "preload/engine/snapshot_event.h"

#include <algorithm>

namespace deja::preload {

void DescribeSnapshot(const SnapshotCall& call, format::Snapshot& snapshot) {
  constexpr size_t kMaxName = 1 << 10;
  snapshot.name = call.name.substr(0, kMaxName);
  snapshot.opaque = call.opaque;
  snapshot.tensor.dtype = call.dtype;
  snapshot.tensor.address = reinterpret_cast<uint64_t>(call.data);
  snapshot.tensor.count = call.opaque ? call.bytes : 1;
  for (int64_t extent : call.shape) {
    snapshot.shape.push_back(static_cast<uint64_t>(std::max<int64_t>(extent, 0)));
    snapshot.tensor.count *= static_cast<uint64_t>(std::max<int64_t>(extent, 0));
  }
}

}  // namespace deja::preload
