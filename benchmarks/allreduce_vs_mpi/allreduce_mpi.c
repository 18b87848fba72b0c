#include <mpi.h>

#include "measure.h"

static void AllReduceFloats(const float* in, float* out, size_t count) {
  MPI_Allreduce(in, out, (int)count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
}

int main(int argc, char** argv) {
  int rank = 0;
  int ranks = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  Measure(AllReduceFloats, rank, ranks);
  MPI_Finalize();
  return 0;
}
