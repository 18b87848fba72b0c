#include "replayer/nccl/nccl_replayer.h"

#include "api/nccl_table.h"
#include "common/runtime/errno_keeper.h"
#include "include/compat/curand.h"
#include "include/compat/nccl.h"
#include "replayer/nccl/generators.h"
#include "replayer/nccl/nccl_serve.h"
#include "replayer/nccl/served_comm.h"

namespace deja::replayer {

using api::ApiClass;
using preload::Call;

void NcclReplayer::Begin() {
  groups_ = new ProcessGroups(*replayer_.session);  // never destroyed
  replayer_.session->AddLateStarter(groups_);
}

void NcclReplayer::OnNcclCall(Call& call) {
  if (replayer_.session == nullptr) {  // a child of the rank: there is no job for it to be part of
    call.result = call.info->returns == api::ReturnKind::kString
                      ? reinterpret_cast<uint64_t>("not served in a child of the replayed rank")
                      : uint64_t{ncclSystemError};
    return;
  }
  const ErrnoKeeper keep;
  ThreadState& thread = replayer_.session->Thread();
  switch (call.info->klass) {
    case ApiClass::kCollective:
    case ApiClass::kP2p:
      ServeOperation(*replayer_.session, thread, call);
      break;
    case ApiClass::kGroup:
      ServeGroup(*replayer_.session, thread, call);
      break;
    case ApiClass::kQuery:
      ServeQuery(*replayer_.session, thread, call);
      break;
    default:
      ServeOrdered(*replayer_.session, thread, call);
      break;
  }
}

void NcclReplayer::OnCurandCall(Call& call) {
  if (replayer_.session == nullptr) {  // a child that the trace does not have
    if (ServedComm::From(call.ArgOf(api::Role::kComm)) == nullptr) return call.invoke(call);
    call.result = CURAND_STATUS_NOT_INITIALIZED;  // its parent's
    return;
  }
  const ErrnoKeeper keep;
  ServeCurand(*replayer_.session, replayer_.session->Thread(), call);
}

void NcclReplayer::OnGroupCall(preload::GroupCall& call) {
  if (groups_ == nullptr) {  // a child of the rank that made no groups while it was recorded
    call.served = true;
    call.state = preload::GroupState::kRaised;
    call.error = "RuntimeError: not served in a child of the replayed rank";
    return;
  }
  const ErrnoKeeper keep;
  groups_->Serve(replayer_.session->Thread(), call);
}

void NcclReplayer::OnGroupDone(const preload::GroupEnd& end) {
  if (groups_ != nullptr) groups_->WaitForUnknown(replayer_.session->Thread(), end);
}

void NcclReplayer::OnStoreCall(preload::StoreCall& call) {
  call.answer = preload::AnswerFrom::kNone;
  const ErrnoKeeper keep;
  if (groups_ != nullptr) groups_->ServeStore(replayer_.session->Thread(), call);
}

}  // namespace deja::replayer
