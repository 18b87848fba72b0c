// BusyThreads: threads that run, or would if the machine let them. A process that uses little time
// on a machine under load may have one.
//
// Any thread; no allocation. The guard need not be held.
#ifndef DEJA_REPLAYER_PROCESS_BUSY_THREADS_H_
#define DEJA_REPLAYER_PROCESS_BUSY_THREADS_H_

namespace deja::replayer {

// A thread of process `pid` is busy, the calling one left out.
bool IsAThreadBusy(int pid);
// The same for this process.
bool IsAnotherThreadBusy();

}  // namespace deja::replayer

#endif  // DEJA_REPLAYER_PROCESS_BUSY_THREADS_H_
