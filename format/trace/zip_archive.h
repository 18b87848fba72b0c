// Zip archives by libzip, for those who write and read bundles.
//
// Owner: the caller. Threads: one at a time for each archive. Errors: kForeign for a file that is
// no archive, kInvalidArgument for one that exists and should not, else kIo.
#ifndef DEJA_FORMAT_TRACE_ZIP_ARCHIVE_H_
#define DEJA_FORMAT_TRACE_ZIP_ARCHIVE_H_

#include <zip.h>

#include <memory>
#include <string>

#include "common/result.h"

namespace deja::format {

// Closes without writing anything: whoever has written an archive closes it by zip_close.
struct ArchiveCloser {
  void operator()(zip_t* archive) const { zip_discard(archive); }
};
using Archive = std::unique_ptr<zip_t, ArchiveCloser>;

// `flags`: of zip_open.
Result<Archive> OpenArchive(const std::string& path, int flags);

// What libzip says of the archive's last error.
std::string ZipError(zip_t* archive);

}  // namespace deja::format

#endif  // DEJA_FORMAT_TRACE_ZIP_ARCHIVE_H_
