// The entries of a folder as InputFile events have them (docs/FORMAT.md): for each a letter, the
// name, a zero, in the order of the system.
//
// Any thread; no memory but the caller's, no lock.
#ifndef DEJA_RECORDER_FILES_FOLDER_LIST_H_
#define DEJA_RECORDER_FILES_FOLDER_LIST_H_

#include <cstddef>
#include <span>
#include <string_view>

namespace deja::recorder {

// Appends to `list` the entries of the folder `fd` that `wants` takes, all if it is null; `size`:
// bytes that are there. False: there are too many, or the folder cannot be read.
bool ListFolder(int fd, std::span<char> list, size_t& size,
                bool (*wants)(std::string_view name) = nullptr);

}  // namespace deja::recorder

#endif  // DEJA_RECORDER_FILES_FOLDER_LIST_H_
