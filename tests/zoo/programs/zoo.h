// What the programs of the zoo share: ranks from the environment and a communicator of all of them.
// Everything else is in each program, as its author would have written it.
#ifndef DEJA_TESTS_ZOO_ZOO_H_
#define DEJA_TESTS_ZOO_ZOO_H_

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "compat/nccl.h"

#define CHECK(call)                                                                         \
  do {                                                                                      \
    const ncclResult_t result_ = (call);                                                    \
    if (result_ != ncclSuccess) {                                                           \
      std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, ncclGetErrorString(result_)); \
      std::exit(1);                                                                         \
    }                                                                                       \
  } while (0)

struct World {
  int rank = std::atoi(std::getenv("RANK"));
  int size = std::atoi(std::getenv("WORLD_SIZE"));
  ncclComm_t comm = nullptr;

  World() {
    ncclUniqueId id;
    CHECK(ncclGetUniqueId(&id));
    CHECK(ncclCommInitRank(&comm, size, id, rank));
  }
  ~World() { ncclCommDestroy(comm); }
};

// The clean twin: the same program with its bug fixed.
inline bool IsFixed(int argc, char** argv) {
  return argc > 1 && std::strcmp(argv[1], "--fixed") == 0;
}

#endif  // DEJA_TESTS_ZOO_ZOO_H_
