// Small text files, read and written whole.
//
// Any thread. Allocates only the text. Errors: those of the system, with the path.
#ifndef DEJA_COMMON_OS_TEXT_FILE_H_
#define DEJA_COMMON_OS_TEXT_FILE_H_

#include <string>
#include <string_view>

#include "common/result.h"

namespace deja {

// The whole file.
Result<std::string> ReadTextFile(const std::string& path);
// Replaces what the file holds. Readable by its owner alone.
Status WriteTextFile(const std::string& path, std::string_view text);

}  // namespace deja

#endif  // DEJA_COMMON_OS_TEXT_FILE_H_
