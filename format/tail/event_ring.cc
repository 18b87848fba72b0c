#include "format/tail/event_ring.h"

#include <algorithm>
#include <cstring>

#include "format/tail/raw_event.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace deja::format {

uint32_t RecordCheck(const std::byte* bytes, size_t size) {
  return static_cast<uint32_t>(XXH3_64bits(bytes, size));
}

EventRing::Record EventRing::Read(uint64_t position, uint64_t end,
                                  std::span<std::byte> scratch) const {
  RecordHeader header;
  std::memcpy(&header, data_ + Index(position), sizeof header);
  const bool raw = (header.length & kRawRecord) != 0;
  const uint32_t length = header.length & ~kRawRecord;
  if (length == 0 || length > kMaxEventBytes || RecordBytes(length) > end - position) return {};
  const uint64_t begin = Index(position + sizeof header);
  const uint64_t first = std::min<uint64_t>(length, capacity_ - begin);
  const std::span<const std::byte> inside(data_ + begin, first);
  if (raw) {
    // They never straddle the end.
    if (first != length || RawCheckOf(position, inside) != header.check) return {};
    return {scratch.first(EncodeRawEvent(inside, scratch)), RecordBytes(length)};
  }
  if (first == length) return {inside, RecordBytes(length)};
  std::memcpy(scratch.data(), inside.data(), first);
  std::memcpy(scratch.data() + first, data_, length - first);
  return {scratch.first(length), RecordBytes(length)};
}

}  // namespace deja::format
