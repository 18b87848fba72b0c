// Unix sockets between processes of the replayed rank: live, by the kernel, but not at the
// program's names. A name in the file system may be too long in the scratch folder. An abstract one
// would be shared by all replays on the machine. So both ends meet at an abstract name made of the
// scratch folder and the program's name.
//
// Any thread, within the guard.
#ifndef DEJA_REPLAYER_SOCKETS_FAMILY_SOCKETS_H_
#define DEJA_REPLAYER_SOCKETS_FAMILY_SOCKETS_H_

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <string_view>

#include "preload/meet/connection_names.h"

namespace deja::replayer {

// Where the processes of the replay in `scratch` meet the listener at `address`, a Unix name.
preload::SocketAddress FamilyAddress(const std::string& scratch,
                                     const preload::SocketAddress& address);

// The recorded numbers of the rank's processes that have a recording, each with the recorded time
// until which it has one; UINT64_MAX: to its end. Others run live, and do not say again what they
// said. So do those that have become a program that is not recorded (static, or of Go).
std::map<int, uint64_t> RecordedProcesses(const std::string& rank, const std::string& scratch);

// True if a process of the rank accepted a connection at `address`, a recorded Unix name. Reads the
// recordings of all: `rank`, the folder of the rank's, and those of its children.
bool AnyoneAccepts(const std::string& rank, const std::string& scratch, std::string_view address);

// How many of process `client` were accepted there, by its recorded number.
size_t CountAccepted(const std::string& rank, const std::string& scratch, std::string_view address,
                     uint32_t client);

// Connects `fd`, a Unix socket, to the listener at `address`, and has it name itself. Waits for a
// listener for `patience_ms`: the other process may be behind where it was in the recording. 0, or
// -1 and errno.
int ConnectFamily(int fd, const preload::SocketAddress& address, int patience_ms);

// Connects `fd`, a Unix socket of this type, to a listener that takes nothing. Returns that
// listener, whose end resets the connection; or -1, and errno. `scratch`: the replay's scratch
// folder.
int ConnectUntaken(int fd, int type, const std::string& scratch);

// Listens at `address` by a thread that calls `take` for each connection that comes in, until the
// listener is ended. `take` gets the connection's descriptor, and the recorded number of the
// process at its other end (0: not known). The thread holds `mutex` while it accepts and `take`
// runs. A thread that forks is to hold it, too, so that a child inherits no descriptor that has not
// been taken. Returns a descriptor for EndFamilyListener; -1: it cannot be done.
int StartFamilyListener(int type, const preload::SocketAddress& address, std::mutex& mutex,
                        std::function<void(int, int)> take);
void EndFamilyListener(int listener);

}  // namespace deja::replayer

#endif  // DEJA_REPLAYER_SOCKETS_FAMILY_SOCKETS_H_
