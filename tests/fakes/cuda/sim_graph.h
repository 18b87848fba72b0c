// The simulated driver's graphs once they are captured: instantiated, cloned, updated, destroyed.
//
// A launch has the state of the executable graph at that moment. An update or a changed node holds
// for later ones, and an executable graph may be destroyed while it runs. Any thread. Nothing is
// ever freed; what is destroyed is refused from then on.
#ifndef DEJA_TESTS_FAKES_CUDA_SIM_GRAPH_H_
#define DEJA_TESTS_FAKES_CUDA_SIM_GRAPH_H_

#include <memory>
#include <vector>

#include "tests/fakes/cuda/sim_stream.h"

namespace cusim {

using NodesPtr = std::shared_ptr<const std::vector<Node>>;

// Null: it is destroyed.
NodesPtr NodesOf(CUgraphExec exec);
// The node at `place` is this from now on.
CUresult SetNode(CUgraphExec exec, size_t place, Node node);

}  // namespace cusim

#endif  // DEJA_TESTS_FAKES_CUDA_SIM_GRAPH_H_
