// What messages call a folder that the user does not know: a bundle is unpacked into one.
//
// One for the whole process, as it is about words only. Any thread.
#ifndef DEJA_COMMON_OS_FOLDER_NAMES_H_
#define DEJA_COMMON_OS_FOLDER_NAMES_H_

#include <string>

namespace deja::format {

// From now on messages call the folder, and what is in it, by this name.
void CallFolder(const std::string& folder, const std::string& name);

// What messages call `path`: itself, unless it is in such a folder.
std::string NameInMessages(const std::string& path);

}  // namespace deja::format

#endif  // DEJA_COMMON_OS_FOLDER_NAMES_H_
