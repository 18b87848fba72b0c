// ServedComms: the communicators that the program has made in a replay.
//
// A part of Session, made with it, never destroyed. Any thread.
#ifndef DEJA_REPLAYER_NCCL_SERVED_COMMS_H_
#define DEJA_REPLAYER_NCCL_SERVED_COMMS_H_

#include <cstdint>
#include <mutex>
#include <vector>

#include "replayer/core/session.h"
#include "replayer/nccl/nccl_thread.h"
#include "replayer/nccl/served_comm.h"

namespace deja::replayer {

class ServedComms final : public OperationCounts, public LateStarter {
 public:
  static constexpr SessionPart kPart = SessionPart::kComms;

  explicit ServedComms(Session& session) : session_(session) {}

  // A communicator for the program, made by `call`; returns its handle.
  uint64_t New(ThreadState& thread, const RecordedComm& recorded, const RecordedCall& call);
  // Waits for the other ranks of the communicators that the thread has made, if anything will be
  // computed on them.
  void Meet(ThreadState& thread, const RecordedCall& call);

  [[nodiscard]] bool HasComm(uint32_t number) const override;
  [[nodiscard]] uint64_t OperationsOf(uint32_t comm) const override;
  [[nodiscard]] uint64_t MostOperations() const override;
  void StartLate(const LateStart& start) override;

 private:
  Session& session_;
  mutable std::mutex mutex_;
  std::vector<ServedComm*> comms_;
};

}  // namespace deja::replayer

#endif  // DEJA_REPLAYER_NCCL_SERVED_COMMS_H_
