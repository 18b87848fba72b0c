// The text of ncclGetLastError: one for the process, as in NCCL. With NCCL_DEBUG=WARN or more it
// also goes to stderr. Any thread.
#ifndef DEJA_LOOPBACK_RANKS_LAST_ERROR_H_
#define DEJA_LOOPBACK_RANKS_LAST_ERROR_H_

#include "compat/nccl.h"

namespace deja::loopback {

// Remembers the message and returns `result`.
ncclResult_t Report(ncclResult_t result, const char* format, ...)
    __attribute__((format(printf, 2, 3)));

// Valid until the next error of the process.
const char* LastError();

}  // namespace deja::loopback

#endif  // DEJA_LOOPBACK_RANKS_LAST_ERROR_H_
