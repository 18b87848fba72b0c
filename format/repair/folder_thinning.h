// Drops payloads of a process that has ended: its folder is complete, and a window or a budget has
// moved on from them.
//
// As a recorded process does (drainer.h). A WindowChange event says what goes, in a new batch,
// index and footer after the old end of events.deja; then the files are removed. A process that
// dies in between leaves files that the footer says are gone; the next call removes them.
//
// For `deja record`, of folders whose process is gone. Any thread; several processes may do it at
// once, one after the other has the folder.
#ifndef DEJA_FORMAT_REPAIR_FOLDER_THINNING_H_
#define DEJA_FORMAT_REPAIR_FOLDER_THINNING_H_

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "common/result.h"
#include "format/wire/messages.h"

namespace deja::format {

// The payload files of a finished folder, oldest first. kNotFound if it is not finished.
Result<std::vector<Segment>> FinishedSegments(const std::string& folder);

// Removes the oldest ones as long as `goes` says so (an index names a payload in the newest of its
// files only); what stays, as above. `freed` grows by the bytes of the files.
Result<std::vector<Segment>> DropSegments(const std::string& folder,
                                          const std::function<bool(const Segment&)>& goes,
                                          std::string_view reason, uint64_t& freed);

}  // namespace deja::format

#endif  // DEJA_FORMAT_REPAIR_FOLDER_THINNING_H_
