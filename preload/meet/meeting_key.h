// What something by which processes meet is called in every run: by who has made it, and what that
// had made before.
//
// Any thread; no allocation; async-signal-safe once the process has its name.
#ifndef DEJA_PRELOAD_MEET_MEETING_KEY_H_
#define DEJA_PRELOAD_MEET_MEETING_KEY_H_

#include <cstdint>

namespace deja::preload {

// The key of the next thing that the calling thread makes. Not 0.
uint64_t NewMeetingKey();

}  // namespace deja::preload

#endif  // DEJA_PRELOAD_MEET_MEETING_KEY_H_
