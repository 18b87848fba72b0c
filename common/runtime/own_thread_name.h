// The name of threads that Deja starts in a replayed program, as ps and gdb show it.
#ifndef DEJA_COMMON_RUNTIME_OWN_THREAD_NAME_H_
#define DEJA_COMMON_RUNTIME_OWN_THREAD_NAME_H_

namespace deja {

inline constexpr char kOwnThreadName[] = "deja-replay";

}  // namespace deja

#endif  // DEJA_COMMON_RUNTIME_OWN_THREAD_NAME_H_
