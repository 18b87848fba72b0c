// The interface between NCCL and a profiler plugin, versions 1 to 7, as far as a plugin for
// collectives alone needs it.
//
// NCCL looks for ncclProfiler_v7 first, then for older ones, each a structure of functions. Version
// 1 came with NCCL 2.23, 2 with 2.24, 3 with 2.26, 4 with 2.27, 5 with 2.28, 6 with 2.29.3, 7 with
// 2.31. Sizes and offsets are those of plugins/profiler in NCCL's source; tests/conformance
// compares them with NVIDIA's headers where these are at hand. Our description of an event ends
// after the collective's part; NCCL's is longer.
//
// Types only.
#ifndef DEJA_RECORDER_NCCL_NCCL_PROFILER_ABI_H_
#define DEJA_RECORDER_NCCL_NCCL_PROFILER_ABI_H_

#include <cstddef>
#include <cstdint>

namespace deja::recorder::profiler {

// Kinds of events, bits of the mask that init returns.
inline constexpr int kGroup = 1 << 0;
inline constexpr int kCollective = 1 << 1;
inline constexpr int kCollectiveApi = 1 << 9;  // from version 5 on

// What version 1 says in numbers, later ones in words.
inline constexpr const char* kFunctionNames[] = {"Broadcast", "Reduce", "AllGather",
                                                 "ReduceScatter", "AllReduce"};
inline constexpr const char* kAlgorithmNames[] = {
    "TREE", "RING", "COLLNET_DIRECT", "COLLNET_CHAIN", "NVLS", "NVLS_TREE", "PAT"};
inline constexpr const char* kProtocolNames[] = {"LL", "LL128", "SIMPLE"};

struct CollectiveV1 {
  const char* name;
  uint64_t comm_hash;
  uint64_t seq_number;
  uint8_t func;
  const void* send;
  void* recv;
  size_t count;
  int root;
  uint8_t datatype;
  uint32_t op;
  size_t traffic_bytes;
  uint8_t channels;
  uint8_t warps;
  uint8_t algorithm;
  uint8_t protocol;
  int is_collnet;
  int is_nvls;
};

struct CollectiveV2 {
  const char* name;
  uint64_t comm_hash;
  uint64_t seq_number;
  const char* func;
  const void* send;
  void* recv;
  size_t count;
  int root;
  const char* datatype;
  size_t traffic_bytes;
  uint8_t channels;
  uint8_t warps;
  const char* algorithm;
  const char* protocol;
};

struct CollectiveV3 {
  const char* name;
  uint64_t comm_hash;
  uint64_t seq_number;
  const char* func;
  const void* send;
  void* recv;
  size_t count;
  int root;
  const char* datatype;
  uint8_t channels;
  uint8_t warps;
  const char* algorithm;
  const char* protocol;
};

// Versions 5 to 7 have more after it.
struct CollectiveV4 {
  uint64_t seq_number;
  const char* func;
  const void* send;
  void* recv;
  size_t count;
  int root;
  const char* datatype;
  uint8_t channels;
  uint8_t warps;
  const char* algorithm;
  const char* protocol;
};

template <typename Type, typename Collective>
struct Event {
  Type type;
  void* parent;
  int rank;
  Collective collective;
};
using EventV1 = Event<uint8_t, CollectiveV1>;
using EventV2 = Event<uint8_t, CollectiveV2>;
using EventV3 = Event<uint8_t, CollectiveV3>;
using EventV4 = Event<uint8_t, CollectiveV4>;
using EventV5 = Event<uint64_t, CollectiveV4>;

static_assert(offsetof(EventV1, parent) == 8 && offsetof(EventV1, rank) == 16 &&
              offsetof(EventV1, collective) == 24);
static_assert(offsetof(EventV5, parent) == 8 && offsetof(EventV5, rank) == 16 &&
              offsetof(EventV5, collective) == 24);
static_assert(offsetof(CollectiveV1, send) == 32 && offsetof(CollectiveV1, datatype) == 60 &&
              offsetof(CollectiveV1, channels) == 80 && offsetof(CollectiveV1, protocol) == 83);
static_assert(offsetof(CollectiveV2, send) == 32 && offsetof(CollectiveV2, channels) == 80 &&
              offsetof(CollectiveV2, algorithm) == 88 && offsetof(CollectiveV2, protocol) == 96);
static_assert(offsetof(CollectiveV3, send) == 32 && offsetof(CollectiveV3, channels) == 72 &&
              offsetof(CollectiveV3, algorithm) == 80 && offsetof(CollectiveV3, protocol) == 88);
static_assert(offsetof(CollectiveV4, send) == 16 && offsetof(CollectiveV4, channels) == 56 &&
              offsetof(CollectiveV4, algorithm) == 64 && offsetof(CollectiveV4, protocol) == 72);

// Results are ncclResult_t, as an int. `record` has the number of a state and what belongs to it.
template <typename Event, typename Init>
struct Plugin {
  const char* name;
  Init init;
  int (*start)(void* context, void** handle, Event* event);
  int (*stop)(void* handle);
  int (*record)(void* handle, int state, void* arguments);
  int (*finalize)(void* context);
};

using InitV1 = int (*)(void** context, int* mask);
using InitV4 = int (*)(void** context, int* mask, const char* comm_name, uint64_t comm_hash,
                       int nodes, int nranks, int rank, void* log);
using InitV5 = int (*)(void** context, uint64_t comm_id, int* mask, const char* comm_name,
                       int nodes, int nranks, int rank, void* log);

using PluginV1 = Plugin<EventV1, InitV1>;
using PluginV2 = Plugin<EventV2, InitV1>;
using PluginV3 = Plugin<EventV3, InitV1>;
using PluginV4 = Plugin<EventV4, InitV4>;
using PluginV5 = Plugin<EventV5, InitV5>;  // and versions 6 and 7
static_assert(sizeof(PluginV1) == 6 * sizeof(void*));

}  // namespace deja::recorder::profiler

#endif  // DEJA_RECORDER_NCCL_NCCL_PROFILER_ABI_H_
