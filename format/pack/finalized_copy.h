// Finalized copies: a rank's files as they would be if it had finished, for a bundle or a merged
// trace.
//
// One thread calls, all processors work.
#ifndef DEJA_FORMAT_PACK_FINALIZED_COPY_H_
#define DEJA_FORMAT_PACK_FINALIZED_COPY_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "common/result.h"

namespace deja::format {

// What the header of a copy says otherwise.
struct CopiedHeader {
  std::string_view job_id = {};  // 16 bytes; empty: as recorded
  int64_t clock_ahead_ns = 0;    // of the machine's wall clock; taken off the time of the start
};

// Writes the recording that `folder` holds into `out`, an empty folder, as if it had been finished.
// What is only in the tail is put in, damage is left out, index and footer are made. `folder` is
// not changed.
Status WriteFinalizedCopy(const std::string& folder, const std::string& out,
                          const CopiedHeader& changes = {});

}  // namespace deja::format

#endif  // DEJA_FORMAT_PACK_FINALIZED_COPY_H_
