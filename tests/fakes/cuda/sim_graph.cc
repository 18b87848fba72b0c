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
  CUgraph graph = nullptr;
  cusim::MarkPtr last;  // where the latest launch ends
};

namespace {

bool HasConditions(const std::vector<cusim::Node>& nodes) {
  return std::any_of(nodes.begin(), nodes.end(), [](const cusim::Node& node) {
    return node.type == CU_GRAPH_NODE_TYPE_CONDITIONAL;
  });
}

// False: a body has nodes that can be in none.
bool BodiesAreAllowed(const std::vector<cusim::Node>& nodes, bool is_body) {
  return std::all_of(nodes.begin(), nodes.end(), [&](const cusim::Node& node) {
    const bool allowed =
        node.type == CU_GRAPH_NODE_TYPE_KERNEL || node.type == CU_GRAPH_NODE_TYPE_MEMCPY ||
        node.type == CU_GRAPH_NODE_TYPE_EMPTY || node.type == CU_GRAPH_NODE_TYPE_CONDITIONAL;
    return (allowed || !is_body) &&
           std::all_of(node.bodies.begin(), node.bodies.end(),
                       [](CUgraph body) { return BodiesAreAllowed(body->nodes, true); });
  });
}

void Run(CUgraph body) {
  for (const cusim::Node& node : body->nodes) node.work();
}

void RunConditional(const CUDA_CONDITIONAL_NODE_PARAMS& node, const std::vector<CUgraph>& bodies) {
  const std::atomic<unsigned int>& value =
      reinterpret_cast<cusim::Condition*>(static_cast<uintptr_t>(node.handle))->value;
  if (node.type == CU_GRAPH_COND_TYPE_WHILE) {
    while (value != 0) Run(bodies[0]);
    return;
  }
  const unsigned int chosen =
      node.type == CU_GRAPH_COND_TYPE_SWITCH ? value.load() : (value != 0 ? 0U : 1U);
  if (chosen < bodies.size()) Run(bodies[chosen]);
}

}  // namespace

namespace cusim {

std::function<void()> LaunchOf(CUgraphExec exec) {
  std::lock_guard hold(exec->mutex);
  if (exec->nodes == nullptr) return nullptr;
  std::vector<std::function<void()>> works;
  for (const Node& node : *exec->nodes)
    works.push_back(node.bind == nullptr ? node.work : node.bind());
  MarkPtr before = exec->last;
  MarkPtr end = exec->last = std::make_shared<Mark>();
  return [works, before, end, conditions = exec->graph->conditions] {
    if (before != nullptr) before->Wait();
    for (Condition* condition : conditions)
      if (condition->set_at_launch) condition->value = condition->at_launch;
    for (const std::function<void()>& work : works) work();
    end->Reach();
  };
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
  if (graph->destroyed || !BodiesAreAllowed(graph->nodes, false)) return CUDA_ERROR_INVALID_VALUE;
  if (HasConditions(graph->nodes) && graph->executables > 0) return CUDA_ERROR_INVALID_VALUE;
  *exec = new CUgraphExec_st;
  (*exec)->nodes = std::make_shared<const std::vector<cusim::Node>>(graph->nodes);
  (*exec)->graph = graph;
  ++graph->executables;
  return CUDA_SUCCESS;
}

CUresult cuGraphConditionalHandleCreate(CUgraphConditionalHandle* handle, CUgraph graph, CUcontext,
                                        unsigned int at_launch, unsigned int flags) {
  const cusim::ApiCall call;
  auto* condition = new cusim::Condition;
  condition->at_launch = at_launch;
  condition->set_at_launch = (flags & CU_GRAPH_COND_ASSIGN_DEFAULT) != 0;
  graph->conditions.push_back(condition);
  *handle = reinterpret_cast<uintptr_t>(condition);
  return CUDA_SUCCESS;
}

void cusim_set_conditional(CUgraphConditionalHandle handle, unsigned int value) {
  reinterpret_cast<cusim::Condition*>(static_cast<uintptr_t>(handle))->value = value;
}

// Comes after all that the graph has.
CUresult cuGraphAddNode_v2(CUgraphNode* node, CUgraph graph, const CUgraphNode*,
                           const CUgraphEdgeData*, size_t, CUgraphNodeParams* params) {
  const cusim::ApiCall call;
  if (params->type != CU_GRAPH_NODE_TYPE_CONDITIONAL) return CUDA_ERROR_NOT_SUPPORTED;
  CUDA_CONDITIONAL_NODE_PARAMS& wanted = params->conditional;
  std::vector<CUgraph> bodies;
  for (unsigned int i = 0; i < wanted.size; ++i) bodies.push_back(new CUgraph_st);
  wanted.phGraph_out = new CUgraph[wanted.size];
  std::copy(bodies.begin(), bodies.end(), wanted.phGraph_out);
  *node = new CUgraphNode_st{graph->nodes.size(), params->type};
  graph->nodes.push_back(
      {params->type, [wanted, bodies] { RunConditional(wanted, bodies); }, nullptr, bodies});
  return CUDA_SUCCESS;
}

CUresult cuGraphAddNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* after, size_t count,
                        CUgraphNodeParams* params) {
  return cuGraphAddNode_v2(node, graph, after, nullptr, count, params);
}

CUresult cuGraphClone(CUgraph* clone, CUgraph original) {
  const cusim::ApiCall call;
  if (original->destroyed || HasConditions(original->nodes)) return CUDA_ERROR_INVALID_VALUE;
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
  if (std::exchange(exec->nodes, nullptr) == nullptr) return CUDA_ERROR_INVALID_VALUE;
  --exec->graph->executables;
  return CUDA_SUCCESS;
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
