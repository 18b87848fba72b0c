// The functions that a replay stands in front of, or that are watched for conditional nodes, and
// the versions in which they came. NVIDIA's cuda.h and cudaTypedefs.h have all of a function's
// versions by their numbers.
#include <cudaTypedefs.h>

#include <type_traits>

using CuFlags = cuuint64_t;

// PFN_cuMemAlloc_v3020, PFN_cuMemAllocAsync_v11020_ptsz. No parameter is handed on: some are macros
// of the header.
#define DEJA_OF_kAny(type) type
#define DEJA_OF_kLegacy(type) type
#define DEJA_OF_kPerThread(type) type##_ptsz
#define DEJA_CHECK(name, type, params) \
  static_assert(std::is_same_v<std::remove_pointer_t<type>, CUresult params>, name)
#define DEJA_CU_HOOK(name, symbol, since, streams, params) \
  DEJA_CHECK(#name, DEJA_OF_##streams(PFN_##symbol##_v##since), params);
#define DEJA_CU_RETRY(name, symbol, since, streams, params, args) \
  DEJA_CHECK(#name, DEJA_OF_##streams(PFN_##symbol##_v##since), params);
#define DEJA_GRAPH_HOOK(name, symbol, since, streams, params) \
  DEJA_CHECK(#name, DEJA_OF_##streams(PFN_##symbol##_v##since), params);
#if CUDA_VERSION >= 12050
#include "preload/hooks/cuda/graph_hooks.def"
#include "replayer/devices/driver_hooks.def"
#endif
