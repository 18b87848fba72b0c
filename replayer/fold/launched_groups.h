// Operations that are captured into a CUDA graph and computed among the replayed ranks, at each
// launch.
//
// The graph gets nodes that bring what is read to host memory. The last of them, on a thread of the
// driver, computes with the other ranks; further nodes bring the results to the device. The nodes
// are in the order of one stream.
#ifndef DEJA_REPLAYER_FOLD_LAUNCHED_GROUPS_H_
#define DEJA_REPLAYER_FOLD_LAUNCHED_GROUPS_H_

#include <span>

#include "replayer/fold/fold.h"

namespace deja::replayer {

// Puts the nodes for the operations of one group into the graph. Ends the replay where that cannot
// be. On the thread that captures.
void ComputeAtLaunches(Fold& fold, Session& session, ThreadState& thread,
                       std::span<const LiveOperation* const> group);

}  // namespace deja::replayer

#endif  // DEJA_REPLAYER_FOLD_LAUNCHED_GROUPS_H_
