// OperationCounts: which communicators the program has made in this replay, and how far it is on
// each. The room of NCCL counts (replayer/nccl/served_comms.h).
//
// Any thread.
#ifndef DEJA_REPLAYER_CORE_OPERATION_COUNTS_H_
#define DEJA_REPLAYER_CORE_OPERATION_COUNTS_H_

#include <cstdint>

namespace deja::replayer {

class OperationCounts {
 public:
  // Made in this replay, and not given up.
  [[nodiscard]] virtual bool HasComm(uint32_t number) const = 0;
  // Operations that the program has entered on a communicator, by number + 1.
  [[nodiscard]] virtual uint64_t OperationsOf(uint32_t comm) const = 0;
  // The most on any communicator.
  [[nodiscard]] virtual uint64_t MostOperations() const = 0;

 protected:
  ~OperationCounts() = default;
};

}  // namespace deja::replayer

#endif  // DEJA_REPLAYER_CORE_OPERATION_COUNTS_H_
