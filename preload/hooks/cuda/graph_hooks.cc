#include "preload/hooks/cuda/graph_hooks.h"

#include <dlfcn.h>

#include <cstring>

#include "common/runtime/errno_keeper.h"
#include "include/compat/cuda.h"
#include "preload/cuda/conditional_bodies.h"
#include "preload/process/guard.h"
#include "preload/symbols/real_symbols.h"

using CuFlags = unsigned long long;  // NOLINT: cuuint64_t

namespace deja::preload {
namespace {

// The driver's own function of the name under which libcuda.so.1 exports it; null: it lacks it.
void* DriversOwn(const char* name) {
  const Guard guard;
  const ErrnoKeeper keep;
  void* library = OpenLoaded("libcuda.so.1");
  void* found = library == nullptr ? nullptr : RealDlsym(library, name);
  if (found == nullptr) dlerror();  // what was not found is not the program's error
  return found;
}

template <typename Function>
Function Own(const char* name) {
  return reinterpret_cast<Function>(DriversOwn(name));
}

void OnNode(CUresult result, const CUgraphNodeParams* what) {
  if (result != CUDA_SUCCESS || what->type != CU_GRAPH_NODE_TYPE_CONDITIONAL) return;
  const CUDA_CONDITIONAL_NODE_PARAMS& node = what->conditional;
  if (node.phGraph_out != nullptr)
    ConditionalBodies::Get().AddBodies({node.phGraph_out, node.size});
}

void OnCapture(CUresult result, CUstream stream, CUgraph graph) {
  if (result != CUDA_SUCCESS || !ConditionalBodies::Get().IsBody(graph)) return;
  static const auto ask = Own<ConditionalBodies::AskCapture>("cuStreamGetCaptureInfo");
  if (ask != nullptr) ConditionalBodies::Get().AddCapture(ask, stream);
}

void Replace(CUresult result, const char* symbol, void** function, int version, CuFlags flags) {
  if (result != CUDA_SUCCESS || function == nullptr || *function == nullptr) return;
  if (void* hook = GraphHookForSymbol(symbol, version, flags)) *function = hook;
}

namespace hooked {

#define DEJA_GRAPH_HOOK(name, symbol, since, streams, params) CUresult name params;
#include "preload/hooks/cuda/graph_hooks.def"
#undef DEJA_GRAPH_HOOK

CUresult cuGraphAddNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* after, size_t count,
                        CUgraphNodeParams* what) {
  static const auto own = Own<decltype(&cuGraphAddNode)>("cuGraphAddNode");
  const CUresult result = own(node, graph, after, count, what);
  OnNode(result, what);
  return result;
}

CUresult cuGraphAddNode_v2(CUgraphNode* node, CUgraph graph, const CUgraphNode* after,
                           const CUgraphEdgeData* edges, size_t count, CUgraphNodeParams* what) {
  static const auto own = Own<decltype(&cuGraphAddNode_v2)>("cuGraphAddNode_v2");
  const CUresult result = own(node, graph, after, edges, count, what);
  OnNode(result, what);
  return result;
}

CUresult cuStreamBeginCaptureToGraph(CUstream stream, CUgraph graph, const CUgraphNode* after,
                                     const CUgraphEdgeData* edges, size_t count,
                                     CUstreamCaptureMode mode) {
  static const auto own =
      Own<decltype(&cuStreamBeginCaptureToGraph)>("cuStreamBeginCaptureToGraph");
  const CUresult result = own(stream, graph, after, edges, count, mode);
  OnCapture(result, stream, graph);
  return result;
}

CUresult cuStreamBeginCaptureToGraph_ptsz(CUstream stream, CUgraph graph, const CUgraphNode* after,
                                          const CUgraphEdgeData* edges, size_t count,
                                          CUstreamCaptureMode mode) {
  static const auto own =
      Own<decltype(&cuStreamBeginCaptureToGraph_ptsz)>("cuStreamBeginCaptureToGraph_ptsz");
  const CUresult result = own(stream, graph, after, edges, count, mode);
  OnCapture(result, stream == nullptr ? CU_STREAM_PER_THREAD : stream, graph);
  return result;
}

CUresult cuGetProcAddress(const char* symbol, void** function, int version, CuFlags flags) {
  static const auto own = Own<decltype(&cuGetProcAddress)>("cuGetProcAddress");
  const CUresult result = own(symbol, function, version, flags);
  Replace(result, symbol, function, version, flags);
  return result;
}

CUresult cuGetProcAddress_v2(const char* symbol, void** function, int version, CuFlags flags,
                             CUdriverProcAddressQueryResult* status) {
  static const auto own = Own<decltype(&cuGetProcAddress_v2)>("cuGetProcAddress_v2");
  const CUresult result = own(symbol, function, version, flags, status);
  Replace(result, symbol, function, version, flags);
  return result;
}

}  // namespace hooked

enum Streams { kAny, kLegacy, kPerThread };

struct Row {
  const char* name;
  const char* symbol;
  int since;
  Streams streams;
  void* function;
};
const Row kRows[] = {
#define DEJA_GRAPH_HOOK(name, symbol, since, streams, params) \
  {#name, #symbol, since, streams, reinterpret_cast<void*>(&hooked::name)},
#include "preload/hooks/cuda/graph_hooks.def"
#undef DEJA_GRAPH_HOOK
};

}  // namespace

void* GraphHook(const char* name, const void* found) {
  for (const Row& row : kRows)
    if (std::strcmp(row.name, name) == 0) return DriversOwn(name) == found ? row.function : nullptr;
  return nullptr;
}

// One name is several functions, which differ in their parameters: the newest one that both the
// program and the driver know.
void* GraphHookForSymbol(const char* symbol, int version, uint64_t flags) {
  if (symbol == nullptr) return nullptr;
  const bool per_thread = (flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) != 0;
  const Row* found = nullptr;
  for (const Row& row : kRows) {
    if (std::strcmp(row.symbol, symbol) != 0 || row.since > version ||
        (found != nullptr && row.since < found->since))
      continue;
    if (row.streams != kAny && (row.streams == kPerThread) != per_thread) continue;
    if (DriversOwn(row.name) != nullptr) found = &row;
  }
  return found == nullptr ? nullptr : found->function;
}

}  // namespace deja::preload
