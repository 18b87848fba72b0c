// For a copy of the process, made by a fork that the program knows nothing of, which goes on in its
// place.
//
// On the copy's only thread, before anything else of Deja's or the program's runs there.
#ifndef DEJA_PRELOAD_PROCESS_PROCESS_AGAIN_H_
#define DEJA_PRELOAD_PROCESS_PROCESS_AGAIN_H_

namespace deja::preload {

// The engine is this process's: it is no child of the program's.
void StaySameProcess();

}  // namespace deja::preload

#endif  // DEJA_PRELOAD_PROCESS_PROCESS_AGAIN_H_
