// The simulated driver's graphs once they are captured: instantiated, cloned, updated, destroyed.
//
// A launch has the state of the executable graph at that moment. An update or a changed node holds
// for later ones, and an executable graph may be destroyed while it runs. Launches of one
// executable graph run one after the other, whatever streams they are on. Any thread. Nothing is
// ever freed; what is destroyed is refused from then on.
//
// Nodes that wait for an external event or record one take effect in the order of the launches. A
// launch waits for the latest launch before it that has a node that records the event.
//
// A graph with conditional nodes has one executable graph at most and no clone. Bodies with nodes
// that a real driver allows in none are refused when the graph is instantiated, not before.
#ifndef DEJA_TESTS_FAKES_CUDA_SIM_GRAPH_H_
#define DEJA_TESTS_FAKES_CUDA_SIM_GRAPH_H_

#include <memory>
#include <vector>

#include "tests/fakes/cuda/sim_stream.h"

namespace cusim {

using NodesPtr = std::shared_ptr<const std::vector<Node>>;

// What a launch does that is enqueued now. Null: the executable graph is destroyed.
std::function<void()> LaunchOf(CUgraphExec exec);
// The node at `place` is this from now on.
CUresult SetNode(CUgraphExec exec, size_t place, Node node);

}  // namespace cusim

#endif  // DEJA_TESTS_FAKES_CUDA_SIM_GRAPH_H_
