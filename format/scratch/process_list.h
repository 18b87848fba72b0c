// Lists of processes and the folders of their recordings: one NAME, tab, FOLDER a line.
//
// Values; any thread. The reading side does not use the C library's streams, which allocate: the
// program's allocator may be what has called.
#ifndef DEJA_FORMAT_SCRATCH_PROCESS_LIST_H_
#define DEJA_FORMAT_SCRATCH_PROCESS_LIST_H_

#include <string>
#include <string_view>
#include <vector>

#include "common/result.h"

namespace deja::format {

struct ListedProcess {
  std::string name;    // below the process that the replay starts with: "0/1+1"
  std::string folder;  // absolute; empty: the process belongs to another rank
};

// Errors: a name with a tab or a line's end in it, and those of writing.
Status WriteProcessList(const std::string& path, const std::vector<ListedProcess>& processes);

// Empty where there is no such file; a line without a tab is left out.
std::vector<ListedProcess> ReadProcessList(const std::string& path);

}  // namespace deja::format

#endif  // DEJA_FORMAT_SCRATCH_PROCESS_LIST_H_
