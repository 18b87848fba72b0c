// FileRange: the ranges of a FileRead event, one by one.
//
// Values of a trace are not to be trusted: ranges that no file can have are left out. Allocates;
// any thread.
#ifndef DEJA_FORMAT_READER_FILE_RANGES_H_
#define DEJA_FORMAT_READER_FILE_RANGES_H_

#include <cstdint>
#include <vector>

#include "common/ids.h"
#include "format/wire/messages.h"

namespace deja::format {

struct FileRange {
  uint64_t begin = 0;
  uint64_t size = 0;
  Hash128 hash;
};

// The ranges that a FileRead event lists, in its order. Ranges beyond 2^62 are left out.
std::vector<FileRange> RangesOf(const FileRead& event);

}  // namespace deja::format

#endif  // DEJA_FORMAT_READER_FILE_RANGES_H_
