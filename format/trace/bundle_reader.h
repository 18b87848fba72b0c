// Unpacking a bundle, a trace as one zip file, into a private temporary folder.
//
// A bundle is hostile input. Only entries whose names are those of a rank's files are unpacked, to
// names that are made here, into a new folder. The size of the bundle bounds what comes out
// (docs/FORMAT.md, "Bundles"). Any thread.
#ifndef DEJA_FORMAT_TRACE_BUNDLE_READER_H_
#define DEJA_FORMAT_TRACE_BUNDLE_READER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "common/result.h"
#include "format/trace/temporary_folder.h"

namespace deja::format {

// `path`: a bundle, or the first of its parts (format/trace/bundle_parts.h), which are joined
// first. `progress(done, total)`, in bytes, may be empty. kForeign: not a zip file; kLimit: it
// unpacks to more than a bundle does; kCorrupt: damaged.
Result<std::unique_ptr<TempFolder>> UnpackBundle(
    const std::string& path, const std::function<void(uint64_t, uint64_t)>& progress = {});

}  // namespace deja::format

#endif  // DEJA_FORMAT_TRACE_BUNDLE_READER_H_
