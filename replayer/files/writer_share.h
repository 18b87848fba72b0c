// What the recording takes from the program's heap.
//
// The thread that writes the trace is made with the C library. The library takes a block for the
// thread's dynamic thread-local storage from the program's allocator. A replay has no such thread
// and takes the same block, or the program's heap would be shifted against the recorded one.
#ifndef DEJA_REPLAYER_FILES_WRITER_SHARE_H_
#define DEJA_REPLAYER_FILES_WRITER_SHARE_H_

namespace deja::replayer {

// When the replay library is loaded: where a program without communicators was recorded (--single),
// the thread was made before its first instruction.
void TakeWriterShare();

}  // namespace deja::replayer

#endif  // DEJA_REPLAYER_FILES_WRITER_SHARE_H_
