// Memory that the processes of one job on one machine share: a small file beside the tails.
//
// Whoever comes first makes it; all of it is zero then. It is there in full, so that touching it
// never fails, and is not inherited by children. Never unmapped by a recorder. Any thread.
#ifndef DEJA_FORMAT_TAIL_JOB_MEMORY_H_
#define DEJA_FORMAT_TAIL_JOB_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <string>

namespace deja::format {

// `bytes` of `path`, of which the first 8 are `magic`. Null, and errno untouched, if the file is
// not there and cannot be made (or shall not: `create`), or is something else.
void* MapJobMemory(const std::string& path, size_t bytes, uint64_t magic, bool create = true);

// Name of the one in which the job's processes note their pipes (preload/meet/pipe_table.h).
std::string JobPipesName(const std::string& job_id);

}  // namespace deja::format

#endif  // DEJA_FORMAT_TAIL_JOB_MEMORY_H_
