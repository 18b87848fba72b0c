#include "tests/fakes/cuda/sim_graph.h"

#include <algorithm>
#include <mutex>
#include <utility>

#include "tests/fakes/cuda/sim_gate.h"

#pragma GCC visibility push(default)
#include "tests/fakes/cuda/cuda_sim.h"
#pragma GCC visibility pop

struct CUgraphExec_st {
  std::mutex mutex;
  cusim::NodesPtr nodes;  // null: destroyed
};

namespace cusim {

NodesPtr NodesOf(CUgraphExec exec) {
  std::lock_guard hold(exec->mutex);
  return exec->nodes;
}

CUresult SetNode(CUgraphExec exec, size_t place, Node node) {
  std::lock_guard hold(exec->mutex);
  if (exec->nodes == nullptr || place >= exec->nodes->size() ||
      (*exec->nodes)[place].type != node.type)
    return CUDA_ERROR_INVALID_VALUE;
  auto changed = std::make_shared<std::vector<Node>>(*exec->nodes);
  (*changed)[place] = std::move(node);
  exec->nodes = std::move(changed);
  return CUDA_SUCCESS;
}

}  // namespace cusim

extern "C" {

CUresult cuGraphInstantiateWithFlags(CUgraphExec* exec, CUgraph graph, unsigned long long) {
  const cusim::ApiCall call;
  if (graph->destroyed) return CUDA_ERROR_INVALID_VALUE;
  *exec = new CUgraphExec_st;
  (*exec)->nodes = std::make_shared<const std::vector<cusim::Node>>(graph->nodes);
  return CUDA_SUCCESS;
}

CUresult cuGraphClone(CUgraph* clone, CUgraph original) {
  const cusim::ApiCall call;
  if (original->destroyed) return CUDA_ERROR_INVALID_VALUE;
  *clone = new CUgraph_st;
  (*clone)->nodes = original->nodes;
  return CUDA_SUCCESS;
}

CUresult cuGraphDestroy(CUgraph graph) {
  const cusim::ApiCall call;
  return std::exchange(graph->destroyed, true) ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

CUresult cuGraphExecDestroy(CUgraphExec exec) {
  const cusim::ApiCall call;
  std::lock_guard hold(exec->mutex);
  return std::exchange(exec->nodes, nullptr) == nullptr ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

// Whatever the nodes do now; but there must be as many, and of the same types.
CUresult cuGraphExecUpdate_v2(CUgraphExec exec, CUgraph graph, CUgraphExecUpdateResultInfo* info) {
  const cusim::ApiCall call;
  std::lock_guard hold(exec->mutex);
  if (exec->nodes == nullptr || graph->destroyed) return CUDA_ERROR_INVALID_VALUE;
  *info = {CU_GRAPH_EXEC_UPDATE_SUCCESS, nullptr, nullptr};
  const auto same_type = [](const cusim::Node& one, const cusim::Node& other) {
    return one.type == other.type;
  };
  if (exec->nodes->size() != graph->nodes.size())
    info->result = CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
  else if (!std::equal(exec->nodes->begin(), exec->nodes->end(), graph->nodes.begin(), same_type))
    info->result = CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED;
  if (info->result != CU_GRAPH_EXEC_UPDATE_SUCCESS) return CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
  exec->nodes = std::make_shared<const std::vector<cusim::Node>>(graph->nodes);
  return CUDA_SUCCESS;
}

CUresult cuGraphGetNodes(CUgraph graph, CUgraphNode* nodes, size_t* count) {
  const cusim::ApiCall call;
  if (graph->destroyed) return CUDA_ERROR_INVALID_VALUE;
  for (size_t place = graph->handles.size(); place < graph->nodes.size(); ++place)
    graph->handles.push_back(new CUgraphNode_st{place, graph->nodes[place].type});
  if (nodes == nullptr) {
    *count = graph->handles.size();
    return CUDA_SUCCESS;
  }
  *count = std::min(*count, graph->handles.size());
  std::copy_n(graph->handles.begin(), *count, nodes);
  return CUDA_SUCCESS;
}

CUresult cuGraphNodeGetType(CUgraphNode node, CUgraphNodeType* type) {
  const cusim::ApiCall call;
  *type = node->type;
  return CUDA_SUCCESS;
}

}  // extern "C"
