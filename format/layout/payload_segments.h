// The payload files of a rank's folder: their names and numbers.
//
// Segment 0 is payloads.deja, segment N payloads-N.deja. Values only; any thread.
#ifndef DEJA_FORMAT_LAYOUT_PAYLOAD_SEGMENTS_H_
#define DEJA_FORMAT_LAYOUT_PAYLOAD_SEGMENTS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "format/wire/messages.h"

namespace deja::format {

// File names of segments by number, and back; nothing for a name of another form.
std::string SegmentFileName(uint32_t number);
std::optional<uint32_t> ParseSegmentFileName(std::string_view name);
// Those that are in `folder`, in their order.
std::vector<uint32_t> ListSegments(const std::string& folder);

// Ranges are sorted and neither touch nor overlap.
void AddRange(std::vector<SegmentRange>& ranges, SegmentRange range);
bool Contains(const std::vector<SegmentRange>& ranges, uint32_t number);

}  // namespace deja::format

#endif  // DEJA_FORMAT_LAYOUT_PAYLOAD_SEGMENTS_H_
