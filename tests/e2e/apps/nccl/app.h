// What the programs of this folder share: ranks from the environment, inputs that are a function of
// (seed, rank), and a summary of hashes; the serial reference is in reference.h.
//
// The programs use NCCL's C API and nothing of Deja's. Each checks its own results and exits with 0
// or
// 1. Run one process a rank with RANK, WORLD_SIZE and NCCL_COMM_ID set:
//
//     PROGRAM [--seed N | --unseeded] [further arguments]
//
// With --unseeded every rank draws a seed from std::random_device; where ranks must agree they use
// the one of rank 0, which is broadcast.
#ifndef DEJA_TESTS_E2E_APPS_NCCL_APP_H_
#define DEJA_TESTS_E2E_APPS_NCCL_APP_H_

#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "compat/nccl.h"
#include "reference.h"

#define APP_CHECK(condition)                                                                      \
  do {                                                                                            \
    if (!(condition)) {                                                                           \
      std::fprintf(stderr, "rank %d: %s:%d: check failed: %s\n", app::Rank(), __FILE__, __LINE__, \
                   #condition);                                                                   \
      std::_Exit(1);                                                                              \
    }                                                                                             \
  } while (0)

#define APP_EXPECT_RESULT(expected, call)                                                    \
  do {                                                                                       \
    ncclResult_t app_result_ = (call);                                                       \
    if (app_result_ != (expected)) {                                                         \
      std::fprintf(stderr, "rank %d: %s:%d: %s returned %d (%s; %s), not %d\n", app::Rank(), \
                   __FILE__, __LINE__, #call, app_result_, ncclGetErrorString(app_result_),  \
                   ncclGetLastError(nullptr), static_cast<int>(expected));                   \
      std::_Exit(1);                                                                         \
    }                                                                                        \
  } while (0)

#define APP_OK(call) APP_EXPECT_RESULT(ncclSuccess, call)

namespace app {

inline int EnvInt(const char* name, int otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::atoi(text);
}
inline int Rank() {
  static const int rank = EnvInt("RANK", 0);
  return rank;
}
inline int World() {
  static const int world = EnvInt("WORLD_SIZE", 1);
  return world;
}

// memcmp, which may not be given the null pointer of an empty buffer.
inline bool Same(const void* a, const void* b, size_t bytes) {
  return bytes == 0 || std::memcmp(a, b, bytes) == 0;
}

inline void Copy(void* to, const void* from, size_t bytes) {
  if (bytes > 0) std::memcpy(to, from, bytes);
}

struct Arguments {
  uint64_t seed = 1;
  bool unseeded = false;
  std::vector<std::string> rest;
  [[nodiscard]] bool Has(const char* flag) const {
    for (const auto& item : rest)
      if (item == flag) return true;
    return false;
  }
};
inline Arguments Parse(int argc, char** argv) {
  Arguments arguments;
  for (int i = 1; i < argc; ++i) {
    std::string argument = argv[i];
    if (argument == "--seed" && i + 1 < argc) {
      arguments.seed = std::strtoull(argv[++i], nullptr, 0);
    } else if (argument == "--unseeded") {
      arguments.unseeded = true;
    } else {
      arguments.rest.push_back(argument);
    }
  }
  if (arguments.unseeded) {
    std::random_device device;
    arguments.seed = static_cast<uint64_t>(device()) << 32 | device();
  }
  return arguments;
}

// A communicator of all processes. With NCCL_COMM_ID ncclGetUniqueId gives all of them the same id.
inline ncclComm_t InitWorld() {
  ncclUniqueId id;
  APP_OK(ncclGetUniqueId(&id));
  ncclComm_t comm = nullptr;
  APP_OK(ncclCommInitRank(&comm, World(), id, Rank()));
  APP_CHECK(comm != nullptr);
  return comm;
}

// Rank 0's seed, on all ranks, when they drew their own.
inline void AgreeOnSeed(Arguments* arguments, ncclComm_t comm) {
  if (!arguments->unseeded) return;
  APP_OK(ncclBroadcast(&arguments->seed, &arguments->seed, 1, ncclUint64, 0, comm, nullptr));
}

// One line of the summary. All that is printed is a function of the seed and the rank.
inline void Print(const char* what, uint64_t hash) {
  std::printf("rank %d: %s %016" PRIx64 "\n", Rank(), what, hash);
}

inline int Finish() {
  std::printf("rank %d: ok\n", Rank());
  return 0;
}

}  // namespace app

#endif  // DEJA_TESTS_E2E_APPS_NCCL_APP_H_
