// Names of the program's ends of served sockets, by which a program that inherits one finds it.
// Its number is not the recorded one where another thread opened or closed a descriptor earlier or
// later than in the recording. The program knows the live number, from its arguments.
//
// The names are abstract ones of the kernel's socket, which the program never sees.
//
// Any thread, within the guard. errno stays as it was.
#ifndef DEJA_REPLAYER_SOCKETS_HEIR_NAMES_H_
#define DEJA_REPLAYER_SOCKETS_HEIR_NAMES_H_

#include <cstdint>
#include <string_view>

namespace deja::replayer {

// What a socket leads to, the same in the process that made it and in the program that inherits it.
// `scratch`: the replay's scratch folder. `local`, `remote`: recorded addresses; the second is
// empty for a listener.
uint64_t HeirKey(std::string_view scratch, std::string_view local, std::string_view remote);

// A socket that has a name already keeps it.
void NameForHeirs(int fd, uint64_t key);

// True if `fd` has been named so, by this process or the one that passed it on.
bool IsNamedForHeirs(int fd, uint64_t key);

}  // namespace deja::replayer

#endif  // DEJA_REPLAYER_SOCKETS_HEIR_NAMES_H_
