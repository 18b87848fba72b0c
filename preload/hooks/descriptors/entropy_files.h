// Descriptors that lead to a source of entropy (/dev/urandom, /dev/random).
//
// Any thread; no allocation.
#ifndef DEJA_PRELOAD_HOOKS_DESCRIPTORS_ENTROPY_FILES_H_
#define DEJA_PRELOAD_HOOKS_DESCRIPTORS_ENTROPY_FILES_H_

#include "preload/engine/fd_table.h"

namespace deja::preload {

// The object for a descriptor of the file `path`, just opened as `fd`: the object of all sources of
// entropy, or null.
FdObject* EntropyFileOf(const char* path, int fd);

// Descriptors have come in with `message`: those of sources of entropy lead there.
void NoteReceivedDescriptors(const msghdr& message);

}  // namespace deja::preload

#endif  // DEJA_PRELOAD_HOOKS_DESCRIPTORS_ENTROPY_FILES_H_
