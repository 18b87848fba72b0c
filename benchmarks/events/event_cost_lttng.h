// The same events for LTTng-UST: the arguments of an all-reduce, that its results are there, and
// what it returned.
#undef LTTNG_UST_TRACEPOINT_PROVIDER
#define LTTNG_UST_TRACEPOINT_PROVIDER deja_bench
#undef LTTNG_UST_TRACEPOINT_INCLUDE
#define LTTNG_UST_TRACEPOINT_INCLUDE "benchmarks/events/event_cost_lttng.h"

#if !defined(DEJA_BENCHMARKS_EVENTS_EVENT_COST_LTTNG_H_) || \
    defined(LTTNG_UST_TRACEPOINT_HEADER_MULTI_READ)
#define DEJA_BENCHMARKS_EVENTS_EVENT_COST_LTTNG_H_
#include <lttng/tracepoint.h>

// clang-format off
LTTNG_UST_TRACEPOINT_EVENT(deja_bench, enter,
  LTTNG_UST_TP_ARGS(uint32_t, api, uint32_t, comm, uint64_t, comm_seq, uint32_t, stack, const uint64_t*, args),
  LTTNG_UST_TP_FIELDS(
    lttng_ust_field_integer(uint32_t, api, api)
    lttng_ust_field_integer(uint32_t, comm, comm)
    lttng_ust_field_integer(uint64_t, comm_seq, comm_seq)
    lttng_ust_field_integer(uint32_t, stack, stack)
    lttng_ust_field_array(uint64_t, args, args, 7)))
LTTNG_UST_TRACEPOINT_EVENT(deja_bench, results,
  LTTNG_UST_TP_ARGS(uint32_t, comm, uint64_t, comm_seq),
  LTTNG_UST_TP_FIELDS(
    lttng_ust_field_integer(uint32_t, comm, comm)
    lttng_ust_field_integer(uint64_t, comm_seq, comm_seq)))
LTTNG_UST_TRACEPOINT_EVENT(deja_bench, leave,
  LTTNG_UST_TP_ARGS(uint64_t, enter_seq, int64_t, result),
  LTTNG_UST_TP_FIELDS(
    lttng_ust_field_integer(uint64_t, enter_seq, enter_seq)
    lttng_ust_field_integer(int64_t, result, result)))
// clang-format on
#endif
#include <lttng/tracepoint-event.h>
