// ComputedResults: results that no recording has to be asked for, since the replayed ranks compute
// them together (replayer/fold/fold.h).
//
// A part of Session; there is none where ranks are replayed alone. Any thread.
#ifndef DEJA_REPLAYER_NCCL_COMPUTED_RESULTS_H_
#define DEJA_REPLAYER_NCCL_COMPUTED_RESULTS_H_

#include <cstdint>
#include <span>

#include "common/result.h"
#include "preload/calls/call.h"
#include "replayer/core/session.h"
#include "replayer/nccl/nccl_thread.h"
#include "replayer/nccl/served_comm.h"

namespace deja::replayer {

class ComputedResults {
 public:
  static constexpr SessionPart kPart = SessionPart::kComputed;

  // All its ranks are replayed.
  [[nodiscard]] virtual bool IsWhole(const ServedComm& comm) const = 0;
  // Other ranks have the result of this operation. (Asked where the own rank has not.)
  [[nodiscard]] virtual bool OthersHaveResult(const ServedComm& comm, uint64_t seq) const = 0;
  // `comms` are whole. Waits until all ranks of all of them have come, and sets what they are
  // computed by.
  virtual Status Meet(std::span<ServedComm* const> comms) = 0;
  // `comm` is given up by the program.
  virtual void Leave(ServedComm& comm) = 0;
  // `call`: the program's ncclRedOpCreatePreMulSum, served.
  virtual void KeepOperator(const ServedComm& comm, const preload::Call& call) = 0;
  // Computes operations of one group, compares the results with the recording and puts them into
  // the program's buffers. All are on communicators that are computed.
  virtual void Compute(Session& session, ThreadState& thread,
                       std::span<const LiveOperation* const> group) = 0;

 protected:
  ~ComputedResults() = default;
};

}  // namespace deja::replayer

#endif  // DEJA_REPLAYER_NCCL_COMPUTED_RESULTS_H_
