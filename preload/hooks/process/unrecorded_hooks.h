// Calls that are let through and of which the recording says that a replay has nothing like them.
#ifndef DEJA_PRELOAD_HOOKS_PROCESS_UNRECORDED_HOOKS_H_
#define DEJA_PRELOAD_HOOKS_PROCESS_UNRECORDED_HOOKS_H_

#include <string_view>

namespace deja::preload {

inline constexpr std::string_view kIoUring =
    "what io_uring reads and receives; in a replay the kernel has no io_uring";
inline constexpr std::string_view kChroot =
    "what the program does below another root folder (chroot), which a replay may not change";

// The program makes such a call. Any thread; errno is kept.
void NoteUnrecorded(std::string_view what);

}  // namespace deja::preload

#endif  // DEJA_PRELOAD_HOOKS_PROCESS_UNRECORDED_HOOKS_H_
