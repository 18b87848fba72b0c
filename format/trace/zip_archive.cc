#include "format/trace/zip_archive.h"

#include <utility>

namespace deja::format {

std::string ZipError(zip_t* archive) {
  return zip_error_strerror(zip_get_error(archive));
}

Result<Archive> OpenArchive(const std::string& path, int flags) {
  int code = 0;
  Archive archive(zip_open(path.c_str(), flags, &code));
  if (archive != nullptr) return archive;
  zip_error_t error;
  zip_error_init_with_code(&error, code);
  std::string text = zip_error_strerror(&error);
  zip_error_fini(&error);
  if (code == ZIP_ER_NOZIP || code == ZIP_ER_INCONS) {
    return Fail(ErrorCode::kForeign,
                "opening: " + path + ": neither a trace's directory nor a bundle: " + text);
  }
  return Fail(code == ZIP_ER_EXISTS ? ErrorCode::kInvalidArgument : ErrorCode::kIo,
              "opening: " + path + ": " + text);
}

}  // namespace deja::format
