// Real functions behind the hooks, found once and kept in atomic slots.
//
// NCCL: pnccl* first, then the plain name. The places are RTLD_NEXT, then the library that the
// program opened (remembered by the dlsym hook), then libnccl.so.2 if loaded (RTLD_NOLOAD). libc:
// dlsym(RTLD_NEXT). Any thread; a miss is not cached. Never calls a hook of ours, never returns an
// address in this library. errno is kept.
#ifndef DEJA_PRELOAD_SYMBOLS_REAL_SYMBOLS_H_
#define DEJA_PRELOAD_SYMBOLS_REAL_SYMBOLS_H_

#include <atomic>

namespace deja::preload {

// The C library's own dlsym, not our hook.
void* RealDlsym(void* handle, const char* name);
// The same for a name, and dlopen for a library, that may not be there. Where no object has it, the
// loader is not asked: it would allocate an error text with the program's allocator. Leaves dlerror
// to the caller.
void* TryDlsym(void* scope, const char* name);
void* OpenLoaded(const char* file);
// The dlsym that the program would have reached without us: another tool's hook, or the C
// library's.
void* NextDlsym();
// True if `address` is in this library.
bool IsOwnAddress(const void* address);
// RealDlsym, leaving the definitions of this library out: null instead of one of them.
void* LookUpForeign(void* scope, const char* name);
// True if this library is the program's NCCL, and no other is needed (the replay library).
bool StandsInForNccl();
// Next definition of `name` after this library, or null.
void* RealNext(const char* name);
// The real NCCL's `name` ("ncclAllReduce"), or null.
void* RealNccl(const char* name);
// The program has looked up `name` ("ncclAllReduce") through `handle` by itself. True if the NCCL
// it found is the one in use, or is from now on; false if it is a second one, which is left alone.
bool RememberNcclHandle(void* handle, const char* name);
// True if the next definition of `name` after this library is in the library that holds `address`.
bool IsNextDefinedBy(const char* name, const void* address);
// Path of the file that serves NCCL calls, written to `buffer`; empty when there is none yet.
void RealNcclPath(char* buffer, unsigned long size);

// A libc function resolved on first use: `static RealFn<decltype(&::read)> real_read{"read"};`
template <typename Fn>
class RealFn {
 public:
  constexpr explicit RealFn(const char* name) : name_(name) {}
  // The function; null if no library after this one has it. Any thread.
  Fn Get() {
    void* p = slot_.load(std::memory_order_acquire);
    if (p == nullptr) {
      p = RealNext(name_);
      slot_.store(p, std::memory_order_release);
    }
    return reinterpret_cast<Fn>(p);
  }
  template <typename... Args>
  auto operator()(Args... args) {
    return Get()(args...);
  }

 private:
  const char* name_;
  std::atomic<void*> slot_{nullptr};
};

}  // namespace deja::preload

#endif  // DEJA_PRELOAD_SYMBOLS_REAL_SYMBOLS_H_
