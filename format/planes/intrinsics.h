// The vector instructions of x86-64, for functions that are compiled for a processor that is looked
// for at run time (`__attribute__((target(...)))`). Nothing on other machines.
//
// For source files only: a warning is switched off to the end of the file that includes it.
#ifndef DEJA_FORMAT_PLANES_INTRINSICS_H_
#define DEJA_FORMAT_PLANES_INTRINSICS_H_

#if defined(__x86_64__)
#if defined(__GNUC__) && !defined(__clang__)
// gcc 12's own headers pass registers on purpose that nothing was written to.
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#endif
#include <immintrin.h>
#endif

#endif  // DEJA_FORMAT_PLANES_INTRINSICS_H_
