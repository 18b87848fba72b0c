#include "replayer/nccl/served_comms.h"

#include <algorithm>

#include "api/roles.h"
#include "include/compat/nccl.h"
#include "preload/cuda/device.h"
#include "replayer/core/ending.h"
#include "replayer/nccl/computed_results.h"
#include "replayer/turns/turns.h"

namespace deja::replayer {

uint64_t ServedComms::New(ThreadState& thread, const RecordedComm& recorded,
                          const RecordedCall& call) {
  // What is served waits for no other rank: the device gets to it.
  constexpr uint32_t kPatienceMs = 15 * 60 * 1000;
  if (!ServedComm::AnyHeld()) preload::SetDevicePatience(kPatienceMs);
  preload::LookForDevice();
  preload::TheDevice().PrepareDigests();
  const bool unfinished =
      call.result == ncclInProgress && !session_.plan().WasUsed(recorded.number);
  auto* comm = new ServedComm(recorded, unfinished);  // never freed: see served_comm.h
  if (LiveTrace* live = session_.live_trace()) live->Comm(recorded);
  const auto* computed = session_.Find<ComputedResults>();
  if (computed != nullptr && call.api < api::kLibcFamily && computed->IsWhole(*comm))
    NcclOf(thread).new_comms.push_back(comm);
  std::lock_guard<std::mutex> lock(mutex_);
  comms_.push_back(comm);
  return comm->handle();
}

void ServedComms::Meet(ThreadState& thread, const RecordedCall& call) {
  std::vector<ServedComm*>& made = NcclOf(thread).new_comms;
  if (made.empty()) return;
  const Status met = [&] {
    const Turns::Rest rest;
    return session_.Find<ComputedResults>()->Meet(made);
  }();
  made.clear();
  if (!met)
    FailReplay(session_, thread,
               "meeting the other ranks of the communicators of " + ApiText(call.api) + ": " +
                   met.error().message,
               call.stack);
}

bool ServedComms::HasComm(uint32_t number) const {
  std::lock_guard<std::mutex> lock(mutex_);
  return std::any_of(comms_.begin(), comms_.end(),
                     [&](const ServedComm* comm) { return comm->number() == number; });
}

uint64_t ServedComms::OperationsOf(uint32_t comm) const {
  std::lock_guard<std::mutex> lock(mutex_);
  for (const ServedComm* served : comms_)
    if (served->number() == comm) return served->operations();
  return 0;
}

uint64_t ServedComms::MostOperations() const {
  std::lock_guard<std::mutex> lock(mutex_);
  uint64_t most = 0;
  for (const ServedComm* served : comms_) most = std::max(most, served->operations());
  return most;
}

void ServedComms::StartLate(const LateStart& start) {
  std::lock_guard<std::mutex> lock(mutex_);
  for (ServedComm* comm : comms_) comm->SetOperations(start.OperationsOf(comm->number()));
}

}  // namespace deja::replayer
