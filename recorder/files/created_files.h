// Which files a program made: names that it is about to create and that are not there yet. A replay
// on the same machine would find what the recorded run left, and go another way.
//
// An Input event for each: api `creat`, key a hash of the absolute path, data the path. Any thread,
// inside the guard; errno is kept.
#ifndef DEJA_RECORDER_FILES_CREATED_FILES_H_
#define DEJA_RECORDER_FILES_CREATED_FILES_H_

namespace deja::recorder {

class Recording;

// `path`, relative to `dirfd` as in openat, is about to be created if it is not there.
void NoteCreation(Recording& rec, int dirfd, const char* path);

}  // namespace deja::recorder

#endif  // DEJA_RECORDER_FILES_CREATED_FILES_H_
