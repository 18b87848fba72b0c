// Noticing an orderly end of the process.
//
// exit and return from main: an on_exit handler gets the code. The library's destructor tells the
// engine, after the program's own static destructors, which may still make calls. _exit, quick_exit
// and exec are hooked.
#ifndef DEJA_PRELOAD_PROCESS_PROCESS_EXIT_H_
#define DEJA_PRELOAD_PROCESS_PROCESS_EXIT_H_

namespace deja::preload {

// Once, when the engine has been made.
void WatchForExit();
// Again, at a call that programs make in main: handlers that were installed before main run after
// the library's destructor, which needs the code. Costs a load from the second time on.
void WatchForExitInMain();

}  // namespace deja::preload

#endif  // DEJA_PRELOAD_PROCESS_PROCESS_EXIT_H_
