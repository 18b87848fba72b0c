// CHECK: a call of NCCL that has to succeed, or the program says where and ends.
#ifndef DEJA_TESTS_E2E_APPS_REPLAY_CHECK_H_
#define DEJA_TESTS_E2E_APPS_REPLAY_CHECK_H_

#include <nccl.h>

#include <cstdio>
#include <cstdlib>

#define CHECK(call)                                                   \
  do {                                                                \
    if ((call) != ncclSuccess) {                                      \
      std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #call); \
      std::exit(1);                                                   \
    }                                                                 \
  } while (0)

#endif  // DEJA_TESTS_E2E_APPS_REPLAY_CHECK_H_
