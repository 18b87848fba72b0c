// NcclReplayer: answers calls of NCCL, cuRAND and PyTorch's process groups from the recording.
//
// One per process, made with the engine, never destroyed. Any thread, within the guard unless its
// interface says otherwise. errno afterwards is the recording's.
#ifndef DEJA_REPLAYER_NCCL_NCCL_REPLAYER_H_
#define DEJA_REPLAYER_NCCL_NCCL_REPLAYER_H_

#include "preload/calls/group_calls.h"
#include "preload/calls/nccl_calls.h"
#include "replayer/core/replayer.h"
#include "replayer/nccl/process_groups.h"

namespace deja::replayer {

class NcclReplayer : public preload::NcclCalls,
                     public preload::CurandCalls,
                     public preload::GroupCalls {
 public:
  explicit NcclReplayer(Replayer& replayer) : replayer_(replayer) {}

  // The process has a session / is a forked child, which has none yet.
  void Begin();
  void Abandon() { groups_ = nullptr; }

  void OnNcclCall(preload::Call& call) override;
  void OnCurandCall(preload::Call& call) override;
  [[nodiscard]] preload::GroupMode ModeOfGroups() const override {
    return preload::GroupMode::kReplaying;
  }
  void OnGroupCall(preload::GroupCall& call) override;
  void OnGroupDone(const preload::GroupEnd& end) override;
  void OnStoreCall(preload::StoreCall& call) override;

 private:
  Replayer& replayer_;
  ProcessGroups* groups_ = nullptr;  // null where there is no session
};

}  // namespace deja::replayer

#endif  // DEJA_REPLAYER_NCCL_NCCL_REPLAYER_H_
