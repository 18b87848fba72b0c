// event_cost.cc's peer: the same event as a tracepoint of LTTng-UST, in a session that records it.
#include "benchmarks/events/event_cost.h"

#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#define LTTNG_UST_TRACEPOINT_DEFINE
#include "benchmarks/events/event_cost_lttng.h"

int main() {
  event_cost::Report("lttng-ust", [](uint64_t n) {
    const uint64_t args[7] = {0x7f0012345678, 0x7f0012345678, 65536, 7, 0, 1, 0};
    lttng_ust_tracepoint(deja_bench, enter, 4, 1, n, 17, args);
  });
  return 0;
}
