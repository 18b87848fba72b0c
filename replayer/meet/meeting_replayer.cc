#include "replayer/meet/meeting_replayer.h"

#include <unistd.h>

#include <cstdlib>
#include <string>

#include "common/env_vars.h"
#include "common/os/folder_entries.h"
#include "common/os/folder_names.h"
#include "common/runtime/errno_keeper.h"
#include "preload/hooks/descriptors/own_pipes.h"
#include "preload/meet/lock_order.h"
#include "preload/process/guard.h"
#include "preload/process/own_variables.h"
#include "replayer/core/replay_variables.h"
#include "replayer/forks/fork_files.h"
#include "replayer/meet/collections.h"
#include "replayer/meet/meeting_list.h"
#include "replayer/meet/meetings.h"
#include "replayer/meet/pipe_order.h"
#include "replayer/meet/recorded_meetings.h"

namespace deja::replayer {

using preload::Guard;

void MeetingReplayer::Open() {
  pipes_ = preload::PipeTable::Map(replayer_.scratch + kPipesFile);
  AdoptPipes();
}

void MeetingReplayer::Begin() {
  AnnounceMeetings(*replayer_.session);
  AnnouncePipes(*replayer_.session);
}

ThreadState& MeetingReplayer::ThreadAtMeeting() {
  GiveCollections(*replayer_.session, Collections::Place::kMeeting);
  return replayer_.session->Thread();
}

ThreadState& MeetingReplayer::ThreadAtPipe(const preload::PipeSlot* slot, api::LibcApi api) {
  ThreadState& thread = replayer_.session->Thread();
  const bool meets =
      slot != nullptr && NextMeeting(*replayer_.session, thread, api, slot->key.load()) != nullptr;
  GiveCollections(*replayer_.session,
                  meets ? Collections::Place::kMeeting : Collections::Place::kUncounted);
  return thread;
}

void MeetingReplayer::OnAcquire(preload::AcquireCall& call) {
  if (replayer_.session == nullptr && preload::OwnNumber(env::kFromCheckpoint) != 0)
    return call.Real();
  if (replayer_.session == nullptr) return ServeUnrecordedAcquire(replayer_.scratch, call);
  ServeAcquire(*replayer_.session, ThreadAtMeeting(), call);
}

void MeetingReplayer::OnPoll(preload::PollCall& call) {
  if (replayer_.session == nullptr) return call.Real();
  ServePoll(*replayer_.session, ThreadAtMeeting(), call);
}

void MeetingReplayer::OnCount(preload::CountCall& call) {
  if (replayer_.session == nullptr) return call.Real();
  ServeCount(*replayer_.session, ThreadAtMeeting(), call);
}

void MeetingReplayer::OnPipeRead(preload::OwnPipe& pipe, preload::Transfer& transfer) {
  if (replayer_.session == nullptr) return transfer.Real();
  ThreadState& thread = ThreadAtPipe(pipe.in(), api::LibcApi::kpipe);
  ServePipeRead(*replayer_.session, thread, pipe, transfer);
}

void MeetingReplayer::OnPipeWrite(preload::OwnPipe& pipe, preload::Transfer& transfer) {
  if (replayer_.session == nullptr) return transfer.Real();
  ThreadState& thread = ThreadAtPipe(pipe.out(), api::LibcApi::ksocketpair);
  ServePipeWrite(*replayer_.session, thread, pipe, transfer);
}

void MeetingReplayer::OnCollection(const preload::Collection& collection) {
  if (replayer_.session == nullptr || collection.ended) return;
  auto* collections = replayer_.session->Find<Collections>();
  if (collections != nullptr)
    collections->OnOwn(replayer_.session->Thread(), collection.generation);
}

void MeetingReplayer::OnCollectionLooks() {
  if (replayer_.session == nullptr) return;
  auto* collections = replayer_.session->Find<Collections>();
  if (collections != nullptr) collections->OnLook(replayer_.session->Thread());
}

bool MeetingReplayer::KeepsCollections(preload::Collector collector) {
  if (replayer_.session == nullptr) return false;
  auto* collections = replayer_.session->Find<Collections>();
  return collections != nullptr && collections->Keep(collector);
}

void MeetingReplayer::AdoptPipes() {
  if (pipes_ == nullptr) return;
  ForEachEntry("/proc/self/fd", [this](const char* name, int folder) {
    const int fd = std::atoi(name);
    if (fd > STDERR_FILENO && fd != folder) preload::OwnPipe::Adopt(*pipes_, fd);
    return true;
  });
}

void LockReplayer::Begin() {
  locks_ = LockOrder::Make(*replayer_.session);
  preload::WantLockOrder(locks_ != nullptr);
}

bool LockReplayer::OrdersLoops() {
  const preload::Guard guard;
  if (replayer_.session == nullptr) return false;
  const auto reader = format::RankReader::Open(replayer_.session->options().folder);
  if (!reader) return false;
  const auto cursor = (*reader)->Events();
  while (const format::Event* event = cursor->NextOf(format::KindBit(format::EventKind::kNote)))
    if (event->As<format::Note>()->text == preload::kLoopsAreOrdered) return true;
  return false;
}

void LockReplayer::Abandon() {
  locks_ = nullptr;
  preload::WantLockOrder(false);
}

void LockReplayer::EndThread() {
  if (locks_ != nullptr) locks_->EndThread(replayer_.session->Thread());
}

void LockReplayer::Renumber(int (*new_number)(int tid)) {
  if (locks_ != nullptr) locks_->Renumber(new_number);
}

void LockReplayer::OnLock(preload::LockCall& call) {
  if (locks_ == nullptr) return call.real(call);
  const ErrnoKeeper keep;
  ThreadState* thread = nullptr;
  {
    const Guard guard;
    thread = &replayer_.session->Thread();
  }
  locks_->Serve(*thread, call);
}

void LockReplayer::OnOnceBegins(preload::LockCall& call) {
  const Guard guard;
  call.runs = true;
  if (locks_ != nullptr) locks_->BeginOnce(replayer_.session->Thread(), call);
}

}  // namespace deja::replayer
