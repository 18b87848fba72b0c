// A regular file's facts from stat besides the fields of an InputFile event: owner, group, number
// of links, times of access and of change. The event's `entries` has them (docs/FORMAT.md).
//
// Pure functions over the caller's memory, no allocation, any thread. What is read comes from a
// trace and may be anything.
#ifndef DEJA_PRELOAD_FILES_FILE_FACTS_H_
#define DEJA_PRELOAD_FILES_FILE_FACTS_H_

#include <sys/stat.h>

#include <cstddef>
#include <span>
#include <string_view>

namespace deja::preload {

inline constexpr size_t kMaxFileFacts = 112;

// Returns the text, in `room`.
std::string_view WriteFileFacts(const struct stat& info, std::span<char, kMaxFileFacts> room);
// Puts them into `info`; false, and nothing is changed, if the text is no such one.
bool ReadFileFacts(std::string_view text, struct stat& info);

}  // namespace deja::preload

#endif  // DEJA_PRELOAD_FILES_FILE_FACTS_H_
