/* What both programs do: all-reduces of growing size, each repeated for a while; rank 0 prints
 * "BYTES MICROSECONDS" with the median of the repetitions' times. */
#ifndef DEJA_BENCHMARKS_ALLREDUCE_VS_MPI_MEASURE_H_
#define DEJA_BENCHMARKS_ALLREDUCE_VS_MPI_MEASURE_H_

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

typedef void (*AllReduce)(const float* in, float* out, size_t count);

static double Now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int CompareDoubles(const void* a, const void* b) {
  double x = *(const double*)a;
  double y = *(const double*)b;
  return (x > y) - (x < y);
}

static void Measure(AllReduce all_reduce, int rank, int ranks) {
  enum { kMaxBytes = 64 << 20, kMaxTimes = 2000 };
  static double times[kMaxTimes];
  float* in = (float*)malloc(kMaxBytes);
  float* out = (float*)malloc(kMaxBytes);
  for (size_t i = 0; i < kMaxBytes / 4; ++i) {
    in[i] = (float)(rank + 1);
    out[i] = 0;
  }
  for (size_t bytes = 1024; bytes <= kMaxBytes; bytes *= 4) {
    size_t count = bytes / 4;
    int repetitions = (int)((size_t)(kMaxBytes)*6 / bytes);
    if (repetitions > kMaxTimes) repetitions = kMaxTimes;
    if (repetitions < 9) repetitions = 9;
    for (int i = 0; i < 2; ++i) all_reduce(in, out, count);
    for (int i = 0; i < repetitions; ++i) {
      double start = Now();
      all_reduce(in, out, count);
      times[i] = Now() - start;
    }
    float expected = (float)(ranks * (ranks + 1) / 2);
    if (out[0] != expected || out[count - 1] != expected) {
      fprintf(stderr, "rank %d: wrong result at %zu bytes\n", rank, bytes);
      exit(1);
    }
    qsort(times, (size_t)repetitions, sizeof times[0], CompareDoubles);
    if (rank == 0) printf("%zu %.2f\n", bytes, 1e6 * times[repetitions / 2]);
  }
  fflush(stdout);
  free(in);
  free(out);
}

#endif /* DEJA_BENCHMARKS_ALLREDUCE_VS_MPI_MEASURE_H_ */
