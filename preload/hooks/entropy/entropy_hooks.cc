// Sources of entropy by function. Device files are in entropy_files.cc.
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/random.h>

#include <cstring>

#include "preload/hooks/export.h"
#include "preload/hooks/input.h"
#include "preload/symbols/real_symbols.h"

namespace deja::preload {
namespace {

constinit RealFn<ssize_t (*)(void*, size_t, unsigned)> real_getrandom{"getrandom"};
constinit RealFn<int (*)(void*, size_t)> real_getentropy{"getentropy"};
constinit RealFn<uint32_t (*)()> real_arc4random{"arc4random"};
constinit RealFn<void (*)(void*, size_t)> real_arc4random_buf{"arc4random_buf"};
constinit RealFn<uint32_t (*)(uint32_t)> real_arc4random_uniform{"arc4random_uniform"};

// The value of a function that cannot fail and returns four bytes.
template <typename Real>
uint32_t TakeWord(Engine& engine, api::LibcApi api, uint64_t key, Real real) {
  uint32_t value = 0;
  TakeInput(engine, api, key, BytesOf(&value), [&](InputCall& call) {
    uint32_t drawn = real();
    std::memcpy(call.out.data(), &drawn, sizeof drawn);
    call.produced = sizeof drawn;
    call.result = 0;
  });
  return value;
}

// libstdc++ may have come with something that was dlopen'ed with RTLD_LOCAL. Then the call finds us
// in the global scope, but the next definition is not in it.
using RandomDeviceFn = unsigned (*)(void*);
constexpr const char* kRandomDevice = "_ZNSt13random_device9_M_getvalEv";

RandomDeviceFn RealRandomDevice() {
  static constinit std::atomic<void*> slot{nullptr};
  void* real = slot.load(std::memory_order_acquire);
  if (real == nullptr) {
    real = RealNext(kRandomDevice);
    if (real == nullptr) {
      void* handle = OpenLoaded("libstdc++.so.6");
      if (handle != nullptr) real = RealDlsym(handle, kRandomDevice);
    }
    slot.store(real, std::memory_order_release);
  }
  return reinterpret_cast<RandomDeviceFn>(real);
}

}  // namespace
}  // namespace deja::preload

using namespace deja::preload;  // NOLINT: the hooks below are this file's only names

DEJA_EXPORT ssize_t getrandom(void* buffer, size_t size, unsigned flags) {
  Engine* engine = EngineForHook();
  if (engine == nullptr) return real_getrandom(buffer, size, flags);
  return TakeInput(*engine, deja::api::LibcApi::kgetrandom, 0, BytesOf(buffer, size),
                   [size, flags](InputCall& call) {
                     call.result = real_getrandom(call.out.data(), size, flags);
                     call.produced = call.result > 0 ? static_cast<size_t>(call.result) : 0;
                   });
}

DEJA_EXPORT int getentropy(void* buffer, size_t size) {
  Engine* engine = EngineForHook();
  if (engine == nullptr) return real_getentropy(buffer, size);
  return static_cast<int>(TakeInput(*engine, deja::api::LibcApi::kgetentropy, 0,
                                    BytesOf(buffer, size), [size](InputCall& call) {
                                      call.result = real_getentropy(call.out.data(), size);
                                      call.produced = call.result == 0 ? size : 0;
                                    }));
}

DEJA_EXPORT uint32_t arc4random() noexcept {
  Engine* engine = EngineForHook();
  if (engine == nullptr) return real_arc4random();
  return TakeWord(*engine, deja::api::LibcApi::karc4random, 0, [] { return real_arc4random(); });
}

DEJA_EXPORT uint32_t arc4random_uniform(uint32_t bound) noexcept {
  Engine* engine = EngineForHook();
  if (engine == nullptr) return real_arc4random_uniform(bound);
  return TakeWord(*engine, deja::api::LibcApi::karc4random_uniform, bound,
                  [bound] { return real_arc4random_uniform(bound); });
}

DEJA_EXPORT void arc4random_buf(void* buffer, size_t size) noexcept {
  Engine* engine = EngineForHook();
  if (engine == nullptr) return real_arc4random_buf(buffer, size);
  TakeInput(*engine, deja::api::LibcApi::karc4random_buf, 0, BytesOf(buffer, size),
            [size](InputCall& call) {
              real_arc4random_buf(call.out.data(), size);
              call.produced = size;
              call.result = 0;
            });
}

// std::random_device::operator(), of whatever token. What it calls in turn is within the guard.
DEJA_EXPORT unsigned _ZNSt13random_device9_M_getvalEv(void* device) {
  RandomDeviceFn real = RealRandomDevice();
  Engine* engine = EngineForHook();
  if (engine == nullptr) return real(device);
  return TakeWord(*engine, deja::api::LibcApi::k_ZNSt13random_device9_M_getvalEv, 0,
                  [&] { return real(device); });
}
