#include "format/layout/payload_segments.h"

#include <algorithm>
#include <charconv>

#include "common/os/folder_entries.h"
#include "format/wire/frame_format.h"

namespace deja::format {
namespace {

constexpr std::string_view kPrefix = "payloads-";
constexpr std::string_view kSuffix = ".deja";

}  // namespace

std::string SegmentFileName(uint32_t number) {
  if (number == 0) return kPayloadsFile;
  return std::string(kPrefix) + std::to_string(number) + std::string(kSuffix);
}

std::optional<uint32_t> ParseSegmentFileName(std::string_view name) {
  if (name == kPayloadsFile) return 0;
  if (!name.starts_with(kPrefix) || !name.ends_with(kSuffix)) return std::nullopt;
  if (name.size() < kPrefix.size() + kSuffix.size()) return std::nullopt;
  const std::string_view digits =
      name.substr(kPrefix.size(), name.size() - kPrefix.size() - kSuffix.size());
  uint32_t number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  const bool good = error == std::errc() && end == digits.data() + digits.size();
  // One name a number.
  if (!good || number == 0 || digits.front() == '0') return std::nullopt;
  return number;
}

std::vector<uint32_t> ListSegments(const std::string& folder) {
  std::vector<uint32_t> numbers;
  ForEachEntry(folder.c_str(), [&](const char* name, int) {
    if (const auto number = ParseSegmentFileName(name)) numbers.push_back(*number);
    return true;
  });
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

void AddRange(std::vector<SegmentRange>& ranges, SegmentRange range) {
  std::vector<SegmentRange> merged;
  for (const SegmentRange& other : ranges) {
    const bool before = uint64_t{other.last} + 1 < range.first;
    const bool behind = uint64_t{range.last} + 1 < other.first;
    if (before || behind) {
      merged.push_back(other);
    } else {
      range.first = std::min(range.first, other.first);
      range.last = std::max(range.last, other.last);
    }
  }
  const auto place = std::find_if(merged.begin(), merged.end(), [&](const SegmentRange& other) {
    return other.first > range.last;
  });
  merged.insert(place, range);
  ranges = std::move(merged);
}

bool Contains(const std::vector<SegmentRange>& ranges, uint32_t number) {
  return std::any_of(ranges.begin(), ranges.end(), [&](const SegmentRange& range) {
    return range.first <= number && number <= range.last;
  });
}

}  // namespace deja::format
