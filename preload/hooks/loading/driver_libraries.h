// A GPU's driver is the machine's, not the program's. Its libraries (libcuda.so.1 and what that
// opens, NVML) call the C library as if Deja were not there.
//
// What they ask for depends on the driver and the devices of the machine they run on, and on how
// long a device takes. They spin on clocks, make threads, read /proc, keep a cache of translated
// kernels, have a socket that is named after the process. A recording of that would be of no use. A
// replay that served it would deceive the one part of the process that speaks to the hardware. So
// where these libraries import a function that Deja hooks, they get the next one. Kept are the
// hooks that processes, their ends and signals need to be one whole, and those of the dynamic
// loader. Threads that they make have no name of the program's. A callback of the program that runs
// there is on thread "?1", "?2" …, in the order in which such threads reach a hook.
//
// Any thread. No lock of Deja's is held across a call of the loader's.
#ifndef DEJA_PRELOAD_HOOKS_LOADING_DRIVER_LIBRARIES_H_
#define DEJA_PRELOAD_HOOKS_LOADING_DRIVER_LIBRARIES_H_

#include <string_view>

namespace deja::preload {

// Takes the hooks away from the driver's libraries that have been loaded since the last time.
// Cheap if nothing has been loaded. The guard must be held. errno and dlerror are kept.
void SetDriversApart();

// True if `code` is in a library that has been set apart.
bool IsDriverCode(const void* code);

// True for the path of a library of a driver.
bool IsDriverLibrary(std::string_view path);

// True if the driver's libraries keep the hook of this name.
bool IsForDriversToo(std::string_view name);

}  // namespace deja::preload

#endif  // DEJA_PRELOAD_HOOKS_LOADING_DRIVER_LIBRARIES_H_
