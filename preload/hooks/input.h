// What the hooks of nondeterministic inputs share: handing a call to the engine.
//
// Any thread; no allocation. errno afterwards is what the real function, or the recording, left.
#ifndef DEJA_PRELOAD_HOOKS_INPUT_H_
#define DEJA_PRELOAD_HOOKS_INPUT_H_

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "api/libc_table.h"
#include "preload/calls/input_calls.h"
#include "preload/engine/engine.h"
#include "preload/process/guard.h"

namespace deja::preload {

// The engine, if this call is the program's; else null, and the hook calls the real function.
inline Engine* EngineForHook() {
  return InsideDeja() ? nullptr : GetEngine();
}

// Hands an input to the engine. `real(InputCall&)` makes the real call, within the guard, and sets
// `result` and `produced`; if the result is negative, errno is taken as its error.
template <typename Real>
InputCall TakeInputCall(Engine& engine, api::LibcApi api, uint64_t key, std::span<std::byte> out,
                        Real real) {
  InputCall call;
  call.api = static_cast<uint32_t>(api);
  call.key = key;
  call.out = out;
  call.context = &real;
  call.real = [](InputCall& c, void* context) {
    (*static_cast<Real*>(context))(c);
    c.error = c.result < 0 ? errno : 0;
  };
  int saved_errno = errno;
  {
    Guard guard;
    engine.inputs->OnInput(call);
  }
  errno = call.error != 0 ? call.error : saved_errno;
  return call;
}

template <typename Real>
int64_t TakeInput(Engine& engine, api::LibcApi api, uint64_t key, std::span<std::byte> out,
                  Real real) {
  return TakeInputCall(engine, api, key, out, real).result;
}

// A key for a question that is a text or a structure (FNV-1a).
inline uint64_t HashOf(std::string_view text) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (unsigned char c : text) hash = (hash ^ c) * 0x100000001b3u;
  return hash;
}

template <typename T>
std::span<std::byte> BytesOf(T* value) {
  return {reinterpret_cast<std::byte*>(value), sizeof(T)};
}

inline std::span<std::byte> BytesOf(void* data, size_t size) {
  return {static_cast<std::byte*>(data), size};
}

}  // namespace deja::preload

#endif  // DEJA_PRELOAD_HOOKS_INPUT_H_
