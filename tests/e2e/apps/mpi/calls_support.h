// What the themes of calls.cc share: this rank, data from entropy, and the line that is printed.
#ifndef DEJA_TESTS_E2E_APPS_MPI_CALLS_SUPPORT_H_
#define DEJA_TESTS_E2E_APPS_MPI_CALLS_SUPPORT_H_

#include <mpi.h>

#include <cinttypes>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <random>
#include <string>
#include <vector>

inline int g_rank = 0;
inline int g_size = 0;
inline std::string g_out;

inline uint64_t HashOf(const void* data, size_t bytes, uint64_t hash = 14695981039346656037u) {
  for (size_t i = 0; i < bytes; ++i)
    hash = (hash ^ static_cast<const unsigned char*>(data)[i]) * 1099511628211u;
  return hash;
}

template <typename T>
uint64_t HashOf(const std::vector<T>& v) {
  return HashOf(v.data(), v.size() * sizeof(T));
}

inline void Say(const char* what, uint64_t value) {
  char text[64];
  std::snprintf(text, sizeof text, " %s=%016" PRIx64, what, value);
  g_out += text;
}

inline void Require(bool holds, const char* what) {
  if (holds) return;
  std::printf("rank %d of %d: WRONG: %s\n", g_rank, g_size, what);
  std::fflush(stdout);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

template <typename T>
std::vector<T> Random(size_t n) {
  static std::mt19937_64 engine(std::random_device{}());
  std::vector<T> values(n);
  for (T& v : values) v = static_cast<T>(engine() % 1000003);
  return values;
}

inline int Next() {
  return (g_rank + 1) % g_size;
}
inline int Previous() {
  return (g_rank + g_size - 1) % g_size;
}

#endif  // DEJA_TESTS_E2E_APPS_MPI_CALLS_SUPPORT_H_
