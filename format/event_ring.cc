#include "format/event_ring.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace deja::format {

uint32_t RecordCheck(const std::byte* bytes, size_t size) {
  return static_cast<uint32_t>(XXH3_64bits(bytes, size));
}

}  // namespace deja::format
