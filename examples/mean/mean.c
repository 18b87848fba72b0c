/* mean.c: ranks that walk together: each of them draws a number in each step, and all go on from
 * the mean.
 *
 * A program of a user's, in C: it knows NCCL's API and deja.h. INSTALL.md has the line that builds
 * it. How many ranks there are, and which one this is, `deja launch` and `deja record` say in the
 * environment, as torchrun and others do.
 */
#include <deja.h>
#include <nccl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>

static int number_of(const char* name, int otherwise) {
  const char* text = getenv(name);
  return text != NULL ? atoi(text) : otherwise;
}

static void check(ncclResult_t result, const char* what) {
  if (result == ncclSuccess) return;
  fprintf(stderr, "mean: %s: %s\n", what, ncclGetErrorString(result));
  exit(1);
}

int main(int argc, char** argv) {
  const int rank = number_of("RANK", 0);
  const int ranks = number_of("WORLD_SIZE", 1);
  const uint64_t steps = argc > 1 ? strtoull(argv[1], NULL, 10) : 10;
  ncclUniqueId id;
  ncclComm_t comm;
  /* NCCL_COMM_ID is set: the same id in each rank. */
  check(ncclGetUniqueId(&id), "ncclGetUniqueId");
  check(ncclCommInitRank(&comm, ranks, id, rank), "ncclCommInitRank");

  double place = 0;
  const int64_t shape[] = {1};
  for (uint64_t step = 0; step < steps; ++step) {
    uint32_t drawn = 0;
    deja_step(step);
    if (getrandom(&drawn, sizeof drawn, 0) != (ssize_t)sizeof drawn) return 1;
    place += drawn / 4294967296.0 - 0.5;
    check(ncclAllReduce(&place, &place, 1, ncclFloat64, ncclAvg, comm, NULL), "ncclAllReduce");
    deja_tensor("place", &place, shape, 1, DEJA_FLOAT64);
  }
  printf("rank %d of %d: %.17g\n", rank, ranks, place);
  check(ncclCommDestroy(comm), "ncclCommDestroy");
  return 0;
}
