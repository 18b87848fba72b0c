// What a whole collective costs its thread: an all-reduce of one float in a communicator of one
// rank, called as a program calls it. collective_cost.py runs it by itself, recorded at level
// order, and with tracepoints of LTTng-UST around the call instead (DEJA_BENCHMARK_TRACEPOINTS).
#include <cstdio>
#include <cstdlib>

#include "benchmarks/events/event_cost.h"
#include "compat/nccl.h"

#if defined(DEJA_BENCHMARK_TRACEPOINTS)
#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#define LTTNG_UST_TRACEPOINT_DEFINE
#include "benchmarks/events/event_cost_lttng.h"
#endif

namespace {

constexpr int kEvents = 3;  // enter, results, leave

void Check(ncclResult_t result) {
  if (result == ncclSuccess) return;
  std::fprintf(stderr, "%s: %s\n", ncclGetErrorString(result), ncclGetLastError(nullptr));
  std::exit(1);
}

void AllReduce(uint64_t n, ncclComm_t comm, const float& in, float& out) {
#if defined(DEJA_BENCHMARK_TRACEPOINTS)
  const uint64_t args[7] = {reinterpret_cast<uintptr_t>(&in),
                            reinterpret_cast<uintptr_t>(&out),
                            1,
                            ncclFloat32,
                            ncclSum,
                            1,
                            0};
  lttng_ust_tracepoint(deja_bench, enter, 4, 1, n, 17, args);
#else
  (void)n;
#endif
  Check(ncclAllReduce(&in, &out, 1, ncclFloat32, ncclSum, comm, nullptr));
#if defined(DEJA_BENCHMARK_TRACEPOINTS)
  lttng_ust_tracepoint(deja_bench, results, 1, n);
  lttng_ust_tracepoint(deja_bench, leave, n, 0);
#endif
}

}  // namespace

int main(int argc, char** argv) {
  ncclUniqueId id;
  ncclComm_t comm = nullptr;
  Check(ncclGetUniqueId(&id));
  Check(ncclCommInitRank(&comm, 1, id, 0));
  const float in = 1;
  float out = 0;
  event_cost::Report(
      argc > 1 ? argv[1] : "alone", [&](uint64_t n) { AllReduce(n, comm, in, out); }, kEvents);
  Check(ncclCommDestroy(comm));
  return 0;
}
