// Reads of sources of entropy by stream, in a C library whose streams' own calls are not seen
// (stream_hooks.cc).
#include <cstdio>

#include "preload/calls/connections.h"
#include "preload/engine/fd_table.h"
#include "preload/hooks/export.h"
#include "preload/hooks/input.h"
#include "preload/symbols/real_symbols.h"

namespace deja::preload {
namespace {

constinit RealFn<size_t (*)(void*, size_t, size_t, FILE*)> real_fread{"fread"};
constinit RealFn<size_t (*)(void*, size_t, size_t, FILE*)> real_fread_unlocked{"fread_unlocked"};
constinit RealFn<size_t (*)(void*, size_t, size_t, size_t, FILE*)> real_fread_chk{"__fread_chk"};
constinit RealFn<int (*)(FILE*)> real_fgetc{"fgetc"};
constinit RealFn<int (*)(FILE*)> real_getc{"getc"};
constinit RealFn<int (*)(FILE*)> real_IO_getc{"_IO_getc"};

// The engine, if the stream reads from a source of entropy.
Engine* EngineForStream(FILE* stream) {
  FdObject* object = stream != nullptr ? FdTable::Find(fileno_unlocked(stream)) : nullptr;
  bool is = object != nullptr && object->kind() == FdObject::Kind::kEntropy;
  return is && !WatchStreams() ? EngineForHook() : nullptr;
}

template <typename Real>
size_t TakeBlocks(Engine& engine, void* buffer, size_t size, size_t count, Real real) {
  return static_cast<size_t>(TakeInput(engine, api::LibcApi::kfread, 0,
                                       BytesOf(buffer, size * count), [&](InputCall& call) {
                                         size_t blocks = real(call.out.data());
                                         call.result = static_cast<int64_t>(blocks);
                                         call.produced = blocks * size;
                                       }));
}

template <typename Real>
int TakeCharacter(FILE* stream, Real& real) {
  Engine* engine = EngineForStream(stream);
  if (engine == nullptr) return real(stream);
  return static_cast<int>(TakeInput(*engine, api::LibcApi::kfgetc, 0, {},
                                    [&](InputCall& call) { call.result = real(stream); }));
}

}  // namespace
}  // namespace deja::preload

using namespace deja::preload;  // NOLINT: the hooks below are this file's only names

DEJA_EXPORT size_t fread(void* buffer, size_t size, size_t count, FILE* stream) {
  Engine* engine = EngineForStream(stream);
  if (engine == nullptr) return real_fread(buffer, size, count, stream);
  return TakeBlocks(*engine, buffer, size, count,
                    [&](void* out) { return real_fread(out, size, count, stream); });
}

DEJA_EXPORT size_t fread_unlocked(void* buffer, size_t size, size_t count, FILE* stream) {
  Engine* engine = EngineForStream(stream);
  if (engine == nullptr) return real_fread_unlocked(buffer, size, count, stream);
  return TakeBlocks(*engine, buffer, size, count,
                    [&](void* out) { return real_fread_unlocked(out, size, count, stream); });
}

DEJA_EXPORT size_t __fread_chk(void* buffer, size_t room, size_t size, size_t count, FILE* stream) {
  Engine* engine = EngineForStream(stream);
  if (engine == nullptr) return real_fread_chk(buffer, room, size, count, stream);
  return TakeBlocks(*engine, buffer, size, count,
                    [&](void* out) { return real_fread_chk(out, room, size, count, stream); });
}

DEJA_EXPORT int fgetc(FILE* stream) {
  return TakeCharacter(stream, real_fgetc);
}

#undef getc
DEJA_EXPORT int getc(FILE* stream) {
  return TakeCharacter(stream, real_getc);
}

DEJA_EXPORT int _IO_getc(FILE* stream) {
  return TakeCharacter(stream, real_IO_getc);
}
