/* Opens MPI by itself, as ctypes and plug-ins do, and looks its functions up. Open MPI only: the
 * handles are its symbols. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>

static void* g_mpi;

static void* look_up(const char* name) {
  void* found = dlsym(g_mpi, name);
  if (found == NULL) {
    fprintf(stderr, "%s\n", dlerror());
    exit(2);
  }
  return found;
}

int main(void) {
  if (dlsym(RTLD_DEFAULT, "MPI_Init") != NULL) return 3; /* there is none yet */
  g_mpi = dlopen("libmpi.so.40", RTLD_LAZY | RTLD_LOCAL);
  if (g_mpi == NULL) {
    fprintf(stderr, "%s\n", dlerror());
    return 2;
  }
  int (*init)(int*, char***) = (int (*)(int*, char***))look_up("MPI_Init");
  int (*rank_of)(void*, int*) = (int (*)(void*, int*))look_up("MPI_Comm_rank");
  int (*size_of)(void*, int*) = (int (*)(void*, int*))look_up("PMPI_Comm_size");
  int (*reduce)(const void*, void*, int, void*, void*, void*) =
      (int (*)(const void*, void*, int, void*, void*, void*))look_up("MPI_Allreduce");
  int (*finalize)(void) = (int (*)(void))look_up("MPI_Finalize");
  void* world = look_up("ompi_mpi_comm_world");
  int rank = -1;
  int size = 0;
  unsigned long own = 0;
  unsigned long sum = 0;
  init(NULL, NULL);
  rank_of(world, &rank);
  size_of(world, &size);
  if (getrandom(&own, sizeof own, 0) != sizeof own) return 2;
  reduce(&own, &sum, 1, look_up("ompi_mpi_unsigned_long"), look_up("ompi_mpi_op_sum"), world);
  finalize();
  printf("rank %d of %d: own %016lx sum %016lx\n", rank, size, own, sum);
  return 0;
}
