// Listing folders: opendir and what is done with its stream, and scandir.
#include <dirent.h>
#include <stdlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "preload/calls/file_calls.h"
#include "preload/calls/folders.h"
#include "preload/hooks/export.h"
#include "preload/hooks/files/paths.h"
#include "preload/symbols/program_heap.h"
#include "preload/symbols/real_symbols.h"

namespace deja::preload {
namespace {

constinit RealFn<DIR* (*)(const char*)> real_opendir{"opendir"};
constinit RealFn<DIR* (*)(int)> real_fdopendir{"fdopendir"};
constinit RealFn<dirent* (*)(DIR*)> real_readdir{"readdir"};
constinit RealFn<dirent64* (*)(DIR*)> real_readdir64{"readdir64"};
constinit RealFn<long (*)(DIR*)> real_telldir{"telldir"};
constinit RealFn<void (*)(DIR*, long)> real_seekdir{"seekdir"};
constinit RealFn<void (*)(DIR*)> real_rewinddir{"rewinddir"};
constinit RealFn<int (*)(DIR*)> real_closedir{"closedir"};

// Both kinds of entry are one on 64-bit machines.
static_assert(sizeof(dirent) == sizeof(dirent64) &&
              offsetof(dirent, d_name) == offsetof(dirent64, d_name));

FolderLayer* Layer() {
  Engine* engine = EngineForHook();
  return engine == nullptr ? nullptr : engine->files->Folders();
}

// The layer, if it answers for `stream`.
FolderLayer* LayerOf(DIR* stream) {
  FolderLayer* layer = stream != nullptr ? Layer() : nullptr;
  if (layer == nullptr) return nullptr;
  const Guard guard;
  return layer->Serves(stream) ? layer : nullptr;
}

DIR* Opened(DIR* stream, const char* path) {
  FolderLayer* layer = stream != nullptr ? Layer() : nullptr;
  if (layer != nullptr) {
    const Guard guard;
    layer->OnOpened(stream, path);
  }
  return stream;
}

}  // namespace
}  // namespace deja::preload

using namespace deja::preload;  // NOLINT: the hooks below are this file's only names

DEJA_EXPORT DIR* opendir(const char* path) {
  MappedPath mapped(path, FileUse::kRead);
  if (mapped.refused()) return nullptr;
  DIR* stream = real_opendir(mapped.get());
  mapped.Answered(stream == nullptr ? -1 : 0);
  return Opened(stream, path);
}

DEJA_EXPORT DIR* fdopendir(int fd) {
  return Opened(real_fdopendir(fd), nullptr);
}

DEJA_EXPORT dirent* readdir(DIR* stream) {
  FolderLayer* layer = LayerOf(stream);
  if (layer == nullptr) return real_readdir(stream);
  const Guard guard;
  return layer->Next(stream);
}

DEJA_EXPORT dirent64* readdir64(DIR* stream) {
  FolderLayer* layer = LayerOf(stream);
  if (layer == nullptr) return real_readdir64(stream);
  const Guard guard;
  return reinterpret_cast<dirent64*>(layer->Next(stream));
}

DEJA_EXPORT long telldir(DIR* stream) noexcept {
  FolderLayer* layer = LayerOf(stream);
  if (layer == nullptr) return real_telldir(stream);
  const Guard guard;
  return layer->Position(stream);
}

DEJA_EXPORT void seekdir(DIR* stream, long position) noexcept {
  FolderLayer* layer = LayerOf(stream);
  if (layer == nullptr) return real_seekdir(stream, position);
  const Guard guard;
  layer->SetPosition(stream, position);
}

DEJA_EXPORT void rewinddir(DIR* stream) noexcept {
  FolderLayer* layer = LayerOf(stream);
  if (layer == nullptr) return real_rewinddir(stream);
  const Guard guard;
  layer->SetPosition(stream, 0);
}

DEJA_EXPORT int closedir(DIR* stream) {
  if (FolderLayer* layer = LayerOf(stream)) {
    const Guard guard;
    layer->OnClosed(stream);
  }
  return real_closedir(stream);
}

namespace {

// As the C library's, which lists folders by calls of its own.
template <typename Entry>
int Scan(const char* path, Entry*** out, int (*wanted)(const Entry*),
         int (*compare)(const Entry**, const Entry**)) {
  DIR* stream = opendir(path);
  if (stream == nullptr) return -1;
  Entry** entries = nullptr;
  size_t count = 0;
  size_t room = 0;
  bool failed = false;
  const int saved_errno = errno;
  while (const auto* entry = reinterpret_cast<const Entry*>(readdir(stream))) {
    if (wanted != nullptr && wanted(entry) == 0) continue;
    if (count == room) {
      room = room == 0 ? 16 : 2 * room;
      auto* grown = static_cast<Entry**>(ProgramAllocate(room * sizeof(Entry*)));
      failed = grown == nullptr;
      if (failed) break;
      std::copy_n(entries, count, grown);
      ProgramFree(entries);
      entries = grown;
    }
    auto* copy = static_cast<Entry*>(ProgramAllocate(entry->d_reclen));
    failed = copy == nullptr;
    if (failed) break;
    std::memcpy(copy, entry, entry->d_reclen);
    entries[count++] = copy;
  }
  closedir(stream);
  if (failed) {
    for (size_t i = 0; i < count; ++i) ProgramFree(entries[i]);
    ProgramFree(entries);
    errno = ENOMEM;
    return -1;
  }
  errno = saved_errno;
  if (compare != nullptr && count > 1)
    qsort(entries, count, sizeof(Entry*),
          reinterpret_cast<int (*)(const void*, const void*)>(compare));
  *out = entries;
  return static_cast<int>(count);
}

}  // namespace

DEJA_EXPORT int scandir(const char* path, dirent*** out, int (*wanted)(const dirent*),
                        int (*compare)(const dirent**, const dirent**)) {
  return Scan(path, out, wanted, compare);
}

DEJA_EXPORT int scandir64(const char* path, dirent64*** out, int (*wanted)(const dirent64*),
                          int (*compare)(const dirent64**, const dirent64**)) {
  return Scan(path, out, wanted, compare);
}
