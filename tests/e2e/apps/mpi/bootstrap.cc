// A job of the shape of nccl-tests: MPI numbers the ranks and carries the unique id, NCCL does the
// work, MPI collects the results. All numbers come from entropy, so that only a run with the same
// inputs prints the same.
//
//   --steps=N   rounds of reductions (default 3)
//   --other     rank 2 sends one other number to MPI_Allreduce
//   --abort=R   rank R calls MPI_Abort with code 3 at the end
#include <mpi.h>
#include <nccl.h>
#include <unistd.h>

#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <vector>

namespace {

int Number(int argc, char** argv, const char* name, int otherwise) {
  const size_t n = std::strlen(name);
  for (int i = 1; i < argc; ++i)
    if (std::strncmp(argv[i], name, n) == 0 && argv[i][n] == '=') return std::atoi(argv[i] + n + 1);
  return otherwise;
}

bool Has(int argc, char** argv, const char* name) {
  for (int i = 1; i < argc; ++i)
    if (std::strcmp(argv[i], name) == 0) return true;
  return false;
}

void Check(ncclResult_t result) {
  if (result == ncclSuccess) return;
  std::fprintf(stderr, "NCCL: %s\n", ncclGetErrorString(result));
  MPI_Abort(MPI_COMM_WORLD, 9);
}

uint64_t HashOfHost() {
  char name[256] = {};
  gethostname(name, sizeof name - 1);
  uint64_t hash = 5381;
  for (const char* c = name; *c != 0; ++c) hash = hash * 33 + static_cast<unsigned char>(*c);
  return hash;
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0;
  int size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);

  std::vector<uint64_t> hosts(static_cast<size_t>(size));
  hosts[static_cast<size_t>(rank)] = HashOfHost();
  MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, hosts.data(), sizeof(uint64_t), MPI_BYTE,
                MPI_COMM_WORLD);
  int local_rank = 0;
  for (int i = 0; i < rank; ++i)
    if (hosts[static_cast<size_t>(i)] == hosts[static_cast<size_t>(rank)]) ++local_rank;

  MPI_Comm node;
  MPI_Comm_split(MPI_COMM_WORLD, static_cast<int>(hosts[static_cast<size_t>(rank)] & 0xffff), rank,
                 &node);
  int node_rank = -1;
  int node_size = 0;
  MPI_Comm_rank(node, &node_rank);
  MPI_Comm_size(node, &node_size);

  ncclUniqueId id;
  if (rank == 0) Check(ncclGetUniqueId(&id));
  MPI_Bcast(&id, sizeof id, MPI_BYTE, 0, MPI_COMM_WORLD);
  MPI_Barrier(MPI_COMM_WORLD);
  ncclComm_t comm;
  Check(ncclCommInitRank(&comm, size, id, rank));

  // The seed is drawn on one rank and is everybody's.
  uint64_t seed = 0;
  if (rank == 0) seed = std::random_device{}();
  MPI_Bcast(&seed, 1, MPI_UINT64_T, 0, MPI_COMM_WORLD);
  std::mt19937_64 engine(seed + static_cast<uint64_t>(rank));
  const double begin = MPI_Wtime();
  double sum = 0;
  for (int step = 0; step < Number(argc, argv, "--steps", 3); ++step) {
    std::vector<float> send(1000);
    std::vector<float> receive(send.size());
    for (float& x : send) x = std::uniform_real_distribution<float>(-1, 1)(engine);
    Check(ncclAllReduce(send.data(), receive.data(), send.size(), ncclFloat32, ncclSum, comm,
                        nullptr));
    for (float x : receive) sum += x;
  }
  const double seconds = MPI_Wtime() - begin;

  double own = sum + rank + std::random_device{}();
  if (Has(argc, argv, "--other") && rank == 2) own += 1;
  double total = 0;
  MPI_Allreduce(&own, &total, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  std::vector<double> all(static_cast<size_t>(rank == 0 ? size : 0));
  MPI_Gather(&own, 1, MPI_DOUBLE, all.data(), 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
  double slowest = 0;
  MPI_Reduce(&seconds, &slowest, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);

  std::string line = "rank " + std::to_string(rank) + " of " + std::to_string(size) + ", " +
                     std::to_string(local_rank) + " " + std::to_string(node_rank) + " of " +
                     std::to_string(node_size);
  char text[160];
  std::snprintf(text, sizeof text, ": seed %016" PRIx64 " sum %a own %a total %a in %a s", seed,
                sum, own, total, seconds);
  line += text;
  for (double x : all) {
    std::snprintf(text, sizeof text, " %a", x);
    line += text;
  }
  std::printf("%s\n", line.c_str());
  std::fflush(stdout);
  Check(ncclCommDestroy(comm));
  MPI_Comm_free(&node);
  MPI_Barrier(MPI_COMM_WORLD);
  if (Number(argc, argv, "--abort", -1) == rank) MPI_Abort(MPI_COMM_WORLD, 3);
  MPI_Finalize();
  return 0;
}
