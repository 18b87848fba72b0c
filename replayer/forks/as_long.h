// A pointer as an argument of RawSyscall.
#ifndef DEJA_REPLAYER_FORKS_AS_LONG_H_
#define DEJA_REPLAYER_FORKS_AS_LONG_H_

namespace deja::replayer {

template <typename Pointer>
long AsLong(Pointer* pointer) {
  return reinterpret_cast<long>(pointer);
}

}  // namespace deja::replayer

#endif  // DEJA_REPLAYER_FORKS_AS_LONG_H_
