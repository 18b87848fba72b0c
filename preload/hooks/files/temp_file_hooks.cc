// Files with made-up names: the letters are entropy like any other, drawn inside the C library. A
// replay uses the recorded ones. The name is made up in the folder that the engine says, and the
// program gets its last letters.
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "preload/hooks/export.h"
#include "preload/hooks/files/paths.h"
#include "preload/symbols/program_heap.h"
#include "preload/symbols/real_symbols.h"

namespace deja::preload {
namespace {

constexpr size_t kLetters = 6;

// The six letters in `path`, before a suffix of that many characters; null if there is no room.
char* LettersOf(char* path, int suffix) {
  const size_t size = std::strlen(path);
  const size_t behind = kLetters + static_cast<size_t>(suffix < 0 ? 0 : suffix);
  return suffix >= 0 && behind <= size ? path + size - behind : nullptr;
}

// `make(path)` replaces the six X before the suffix by letters of its own and makes the file;
// `make_named(path)` makes the file of exactly this name, or fails with EEXIST.
template <typename Make, typename MakeNamed>
int MakeUp(api::LibcApi api, char* pattern, int suffix, FileUse use, Make make,
           MakeNamed make_named) {
  MappedPath mapped(pattern, use);
  if (mapped.refused()) return -1;
  char path[PATH_MAX];
  const size_t size = strnlen(mapped.get(), sizeof path - 1);
  std::memcpy(path, mapped.get(), size);
  path[size] = 0;
  char* letters = LettersOf(path, suffix);
  char* told = LettersOf(pattern, suffix);
  Engine* engine = letters != nullptr && told != nullptr ? EngineForHook() : nullptr;
  if (engine == nullptr) return make(mapped.get() == pattern ? pattern : path);

  int made = -1;
  bool is_made = false;
  char drawn[kLetters];
  const int64_t result = TakeInput(*engine, api, 0, BytesOf(drawn, kLetters), [&](InputCall& call) {
    made = make(path);
    is_made = true;
    call.result = made < 0 ? -1 : 0;
    if (made < 0) return;
    std::memcpy(call.out.data(), letters, kLetters);
    call.produced = kLetters;
  });
  if (result < 0) return -1;
  std::memcpy(told, drawn, kLetters);
  if (is_made) return made;
  // Served: the file is still to be made. What is in the way under the recorded name in this
  // machine's folder does not exist for the program, but cannot be written over either.
  const int saved_errno = errno;
  std::memcpy(letters, drawn, kLetters);
  Guard guard;
  made = make_named(path);
  if (made < 0 && errno == EEXIST) {
    std::memset(letters, 'X', kLetters);
    made = make(path);
    if (made >= 0) std::memcpy(told, letters, kLetters);
  }
  if (made >= 0) errno = saved_errno;
  return made;
}

int MakeFile(const char* path, int flags) {
  return open(path, (flags & ~O_ACCMODE) | O_RDWR | O_CREAT | O_EXCL, 0600);
}

constinit RealFn<char* (*)(char*)> real_mkdtemp{"mkdtemp"};
constinit RealFn<char* (*)(char*)> real_mktemp{"mktemp"};
constinit RealFn<char* (*)(char*)> real_tmpnam{"tmpnam"};
constinit RealFn<char* (*)(char*)> real_tmpnam_r{"tmpnam_r"};
constinit RealFn<char* (*)(const char*, const char*)> real_tempnam{"tempnam"};

// A name that the C library makes up without making the file. `real(out)` writes it, or returns
// null. False if there is none.
template <typename Real>
bool TakeMadeUpName(Engine& engine, api::LibcApi api, std::span<char> out, Real real) {
  return TakeInput(engine, api, 0, BytesOf(out.data(), out.size()), [&](InputCall& call) {
           char* text = reinterpret_cast<char*>(call.out.data());
           call.result = real(text) ? 0 : -1;
           call.produced = call.result == 0 ? std::strlen(text) + 1 : 0;
         }) == 0;
}

}  // namespace
}  // namespace deja::preload

using namespace deja::preload;  // NOLINT: the hooks below are this file's only names

#define DEJA_TEMP_HOOK(name, suffix, flags, parameters, arguments)            \
  DEJA_EXPORT int name(char* pattern DEJA_REST parameters) {                  \
    static constinit RealFn<int (*)(char* DEJA_REST parameters)> real{#name}; \
    return MakeUp(                                                            \
        deja::api::LibcApi::kmkstemp, pattern, suffix, FileUse::kCreate,      \
        [&](char* path) { return real(path DEJA_REST arguments); },           \
        [&](const char* path) { return MakeFile(path, flags); });             \
  }
#define DEJA_REST(...) __VA_OPT__(, ) __VA_ARGS__

// clang-format off
DEJA_TEMP_HOOK(mkstemp, 0, 0, (), ())
DEJA_TEMP_HOOK(mkstemp64, 0, 0, (), ())
DEJA_TEMP_HOOK(mkostemp, 0, flags, (int flags), (flags))
DEJA_TEMP_HOOK(mkostemp64, 0, flags, (int flags), (flags))
DEJA_TEMP_HOOK(mkstemps, suffix, 0, (int suffix), (suffix))
DEJA_TEMP_HOOK(mkstemps64, suffix, 0, (int suffix), (suffix))
DEJA_TEMP_HOOK(mkostemps, suffix, flags, (int suffix, int flags), (suffix, flags))
DEJA_TEMP_HOOK(mkostemps64, suffix, flags, (int suffix, int flags), (suffix, flags))
// clang-format on

DEJA_EXPORT char* mkdtemp(char* pattern) noexcept {
  const int made = MakeUp(
      deja::api::LibcApi::kmkdtemp, pattern, 0, FileUse::kMakeDir,
      [](char* path) { return real_mkdtemp(path) != nullptr ? 0 : -1; },
      [](const char* path) { return mkdir(path, 0700); });
  return made == 0 ? pattern : nullptr;
}

// An empty name is how it fails.
DEJA_EXPORT char* mktemp(char* pattern) noexcept {
  char* letters = pattern != nullptr ? LettersOf(pattern, 0) : nullptr;
  Engine* engine = letters != nullptr ? EngineForHook() : nullptr;
  if (engine == nullptr) return real_mktemp(pattern);
  char path[PATH_MAX];
  if (!TakeMadeUpName(*engine, deja::api::LibcApi::kmktemp, path, [pattern](char* out) {
        std::strncpy(out, pattern, PATH_MAX - 1);
        return real_mktemp(out)[0] != '\0';
      })) {
    pattern[0] = '\0';
    return pattern;
  }
  const char* drawn = LettersOf(path, 0);
  if (drawn != nullptr) std::memcpy(letters, drawn, kLetters);
  return pattern;
}

DEJA_EXPORT char* tmpnam_r(char* out) noexcept {
  Engine* engine = out != nullptr ? EngineForHook() : nullptr;
  if (engine == nullptr) return real_tmpnam_r(out);
  return TakeMadeUpName(*engine, deja::api::LibcApi::ktmpnam, {out, L_tmpnam},
                        [](char* o) { return real_tmpnam_r(o) != nullptr; })
             ? out
             : nullptr;
}

DEJA_EXPORT char* tmpnam(char* out) noexcept {
  if (EngineForHook() == nullptr) return real_tmpnam(out);
  static char own[L_tmpnam];
  return tmpnam_r(out != nullptr ? out : own);
}

DEJA_EXPORT char* tempnam(const char* folder, const char* prefix) noexcept {
  Engine* engine = EngineForHook();
  if (engine == nullptr) return real_tempnam(folder, prefix);
  char name[PATH_MAX];
  const bool made = TakeMadeUpName(*engine, deja::api::LibcApi::ktempnam, name, [=](char* out) {
    char* live = real_tempnam(folder, prefix);
    if (live == nullptr) return false;
    std::strncpy(out, live, PATH_MAX - 1);
    ProgramFree(live);
    return true;
  });
  return made ? strdup(name) : nullptr;
}
