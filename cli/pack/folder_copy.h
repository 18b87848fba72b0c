// Copying a folder with all that is in it, with progress.
//
// Regular files and folders; what else there is, is left out. Main thread.
#ifndef DEJA_CLI_PACK_FOLDER_COPY_H_
#define DEJA_CLI_PACK_FOLDER_COPY_H_

#include <string>

#include "common/result.h"

namespace deja::cli {

// `to` must not exist. After an error part of the copy is there.
Status CopyFolder(const std::string& from, const std::string& to);

}  // namespace deja::cli

#endif  // DEJA_CLI_PACK_FOLDER_COPY_H_
