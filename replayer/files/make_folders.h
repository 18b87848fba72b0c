// Folders of a replay's scratch folder.
//
// Any thread; of several that make the same folder each gets true.
#ifndef DEJA_REPLAYER_FILES_MAKE_FOLDERS_H_
#define DEJA_REPLAYER_FILES_MAKE_FOLDERS_H_

#include <string>

namespace deja::replayer {

// Makes the folder `path`, which is absolute, and those above it that are missing. False with errno
// where that fails.
bool MakeFolders(const std::string& path);

}  // namespace deja::replayer

#endif  // DEJA_REPLAYER_FILES_MAKE_FOLDERS_H_
