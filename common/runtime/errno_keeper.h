// Puts errno back: what Deja does around a call of the program must not change it.
//
// On the stack of one thread; async-signal-safe.
#ifndef DEJA_COMMON_RUNTIME_ERRNO_KEEPER_H_
#define DEJA_COMMON_RUNTIME_ERRNO_KEEPER_H_

#include <cerrno>

namespace deja {

class ErrnoKeeper {
 public:
  ErrnoKeeper() = default;
  ~ErrnoKeeper() { errno = saved_; }
  ErrnoKeeper(const ErrnoKeeper&) = delete;
  ErrnoKeeper& operator=(const ErrnoKeeper&) = delete;

 private:
  const int saved_ = errno;
};

}  // namespace deja

#endif  // DEJA_COMMON_RUNTIME_ERRNO_KEEPER_H_
