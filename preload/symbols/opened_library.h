// OpenedLibrary: where the functions of a library are that a program may be linked to, may open by
// itself, or may not have at all.
//
// One for each library, in static memory. Any thread; no allocation; errno and dlerror are kept.
// Never finds a hook of ours.
#ifndef DEJA_PRELOAD_SYMBOLS_OPENED_LIBRARY_H_
#define DEJA_PRELOAD_SYMBOLS_OPENED_LIBRARY_H_

#include <atomic>
#include <cstddef>
#include <span>

namespace deja::preload {

class OpenedLibrary {
 public:
  // `files`: names under which it may have been loaded as a part of something that the program
  // opened.
  constexpr explicit OpenedLibrary(std::span<const char* const> files) : files_(files) {}

  // What is called `name` in the global scope after us, or in the library; null: nothing.
  void* Find(const char* name);
  // The program has looked `name` up through `handle` by itself. What it found is the library from
  // now on, unless there is one.
  void Remember(void* handle, const char* name);

 private:
  void* FindIn(const char* name);

  const std::span<const char* const> files_;
  std::atomic<void*> handle_{nullptr};  // our own
};

}  // namespace deja::preload

#endif  // DEJA_PRELOAD_SYMBOLS_OPENED_LIBRARY_H_
