// ActivityCount: by which the process that started a replay sees that the replay goes on.
//
// Each replayed process has a file of eight bytes in the replay's scratch folder, which it maps.
// The file holds a count of what the process has done that was recorded. A forked child has a file
// of its own, named by its process id. Any thread; no allocation by the program's heap. The mapping
// lasts until the process ends.
#ifndef DEJA_COMMON_OS_ACTIVITY_COUNT_H_
#define DEJA_COMMON_OS_ACTIVITY_COUNT_H_

#include <atomic>
#include <cstdint>
#include <string>

namespace deja {

// The folder of these files, in a scratch folder.
inline constexpr char kActivityFolder[] = "/activity/";

// The calling process's count. Null: the file cannot be made.
std::atomic<uint64_t>* MapActivityCount(const std::string& scratch);

// The sum of the counts of all processes that the folder has files of. It never falls while a
// replay lasts.
uint64_t SumOfActivity(const std::string& scratch);

}  // namespace deja

#endif  // DEJA_COMMON_OS_ACTIVITY_COUNT_H_
