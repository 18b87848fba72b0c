#include "format/reader/file_ranges.h"

#include <algorithm>
#include <cstring>

namespace deja::format {

std::vector<FileRange> RangesOf(const FileRead& event) {
  constexpr uint64_t kMost = uint64_t{1} << 62;
  std::vector<FileRange> ranges;
  uint64_t end = 0;
  const size_t count =
      std::min({event.gaps.size(), event.sizes.size(), event.hashes.size() / sizeof(Hash128)});
  for (size_t i = 0; i < count; ++i) {
    FileRange range;
    range.begin = end + static_cast<uint64_t>(event.gaps[i]);
    range.size = event.sizes[i];
    std::memcpy(range.hash.bytes.data(), event.hashes.data() + i * sizeof(Hash128),
                sizeof(Hash128));
    end = range.begin + range.size;
    if (range.begin < kMost && range.size < kMost) ranges.push_back(range);
  }
  return ranges;
}

}  // namespace deja::format
