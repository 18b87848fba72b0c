// Finalized copies: a rank's files as they would be if it had finished, for a bundle.
//
// One thread calls, all processors work.
#ifndef DEJA_FORMAT_PACK_FINALIZED_COPY_H_
#define DEJA_FORMAT_PACK_FINALIZED_COPY_H_

#include <string>

#include "common/result.h"

namespace deja::format {

// Writes the recording that `folder` holds into `out`, an empty folder, as if it had been finished.
// What is only in the tail is put in, damage is left out, index and footer are made. `folder` is
// not changed.
Status WriteFinalizedCopy(const std::string& folder, const std::string& out);

}  // namespace deja::format

#endif  // DEJA_FORMAT_PACK_FINALIZED_COPY_H_
