// Names that processes of a rank have made, which were not there before. The command line lists
// those of the children for the replay library, since the rank's own recording says nothing of
// them. The rank adds its own for its children.
//
// Values; any thread. The reading side does not use the C library's streams, which allocate: the
// program's allocator may be what has called.
#ifndef DEJA_FORMAT_SCRATCH_CREATED_NAMES_H_
#define DEJA_FORMAT_SCRATCH_CREATED_NAMES_H_

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "common/result.h"

namespace deja::format {

struct CreatedName {
  std::string path;        // absolute
  uint64_t time_ns = 0;    // when first; Event.time_ns
  bool was_there = false;  // one of them had found it there before that
};

// Finds the names in a recording's inputs.
class CreatedNameFinder {
 public:
  // `data` of an input of a thread, in the thread's order. The name that was made, empty if none
  // was. Letters of mkstemp and mkdtemp come after the pattern, which is no name.
  std::string Add(uint32_t thread, uint32_t api, std::string_view data);

 private:
  std::map<uint32_t, std::string> last_;  // of each thread
};

// Errors: those of writing.
Status WriteCreatedNames(const std::string& path, const std::vector<CreatedName>& names);

// Empty where there is no such file; a damaged entry ends the list.
std::vector<CreatedName> ReadCreatedNames(const std::string& path);

}  // namespace deja::format

#endif  // DEJA_FORMAT_SCRATCH_CREATED_NAMES_H_
