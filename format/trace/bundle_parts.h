// A bundle in parts: NAME.zip.001, NAME.zip.002, …, each at most so large, which together are the
// bytes of NAME.zip.
#ifndef DEJA_FORMAT_TRACE_BUNDLE_PARTS_H_
#define DEJA_FORMAT_TRACE_BUNDLE_PARTS_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/result.h"

namespace deja::format {

// True for the name of a first part.
bool IsFirstPart(std::string_view path);

// The parts that there are, of which `first` is the first.
std::vector<std::string> PartsOf(const std::string& first);

// Cuts the file into parts of at most `part_bytes` beside it, and removes it. No part may exist.
Result<std::vector<std::string>> SplitFile(const std::string& path, uint64_t part_bytes);

// Writes what the parts, of which `first` is the first, are together to `out`, which must not
// exist.
Status JoinParts(const std::string& first, const std::string& out);

}  // namespace deja::format

#endif  // DEJA_FORMAT_TRACE_BUNDLE_PARTS_H_
