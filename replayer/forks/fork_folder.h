// The replay's folder, kept beside an image of the process: what the program has written so far.
//
// Main thread; the guard must be held. gdb/deja_gdb/images.py puts it back.
#ifndef DEJA_REPLAYER_FORKS_FORK_FOLDER_H_
#define DEJA_REPLAYER_FORKS_FORK_FOLDER_H_

#include <cstdint>
#include <string>

#include "replayer/forks/reason.h"

namespace deja::replayer {

// Where all of them are, within the replay's folder.
inline constexpr char kForkFolders[] = "/images";

// Copies the replay's folder, but not its images, to that of image `number`, which is replaced.
// Empty: done. Else why not: it is more than an image should cost, or cannot be copied. Other
// threads may be stopped: it takes no lock and allocates nothing.
Reason KeepFolder(const std::string& scratch, uint64_t number);
void RemoveKeptFolder(const std::string& scratch, uint64_t number);

}  // namespace deja::replayer

#endif  // DEJA_REPLAYER_FORKS_FORK_FOLDER_H_
