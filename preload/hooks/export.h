// How a hook is written: DEJA_EXPORT int getppid() noexcept { … }
//
// Visible in spite of -fvisibility=hidden; the version script, made from the tables, has the last
// word, so a hook without a row in a table is not exported.
#ifndef DEJA_PRELOAD_HOOKS_EXPORT_H_
#define DEJA_PRELOAD_HOOKS_EXPORT_H_

#define DEJA_EXPORT extern "C" __attribute__((visibility("default")))

#endif  // DEJA_PRELOAD_HOOKS_EXPORT_H_
