#include "loopback/ranks/group.h"

#include <pthread.h>
#include <signal.h>

#include <algorithm>

#include "loopback/ranks/last_error.h"
#include "loopback/ranks/memory.h"
#include "loopback/ranks/process.h"

namespace deja::loopback {
namespace {

// A group in the hands of a thread of ours.
struct Job {
  OpList ops;
  std::vector<ncclComm*> comms;
};

ncclResult_t RunAndSettle(OpList& ops, const std::vector<ncclComm*>& comms) {
  for (ncclComm* comm : comms) comm->users.fetch_add(1);
  ncclResult_t result = RunOps(ops);
  for (auto& op : ops) op->Settle();
  for (ncclComm* comm : comms) {
    if (result != ncclSuccess && !comm->ready.load()) comm->Break(result);
    comm->users.fetch_sub(1);
  }
  return result;
}

void* RunJob(void* argument) {
  std::unique_ptr<Job> job(static_cast<Job*>(argument));
  ncclResult_t result = RunAndSettle(job->ops, job->comms);
  for (ncclComm* comm : job->comms) {
    if (result != ncclSuccess && !comm->stopping.load()) comm->Break(result);
    comm->pending.fetch_sub(1, std::memory_order_release);
  }
  return nullptr;
}

bool StartThread(Job* job) {
  // The program's signals are the program's.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, &before);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  pthread_t thread;
  bool started = pthread_create(&thread, &attributes, RunJob, job) == 0;
  pthread_attr_destroy(&attributes);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return started;
}

}  // namespace

Group& Group::Current() {
  static thread_local Group group;
  return group;
}

ncclResult_t Group::Fail(ncclResult_t result) {
  if (depth_ > 0 && result != ncclSuccess && result != ncclInProgress && error_ == ncclSuccess)
    error_ = result;
  return result;
}

ncclResult_t Group::Join(ncclComm* waits_on) {
  if (!comms_.empty() && comms_[0]->settings.blocking != waits_on->settings.blocking)
    return Report(ncclInvalidArgument,
                  "Blocking and nonblocking communicators are not allowed in the same group.");
  if (std::find(comms_.begin(), comms_.end(), waits_on) == comms_.end()) comms_.push_back(waits_on);
  return ncclSuccess;
}

void Group::AddToSelf(ncclComm* comm, void* buffer, size_t bytes, bool is_send) {
  to_self_.push_back({comm, buffer, bytes, is_send, false});
}

ncclResult_t Group::End() {
  if (depth_ == 0) return Report(ncclInvalidUsage, "ncclGroupEnd: not in a group call.");
  if (--depth_ > 0) return ncclSuccess;
  ncclResult_t result = error_;
  if (result == ncclSuccess) result = CopyToSelf();
  if (result == ncclSuccess) {
    result = Run();
    for (ncclComm* comm : doomed_) DeleteComm(comm, RankState::kLeft);
  } else {
    Discard();
  }
  Reset();
  return result;
}

ncclResult_t Group::SimulateEnd(float* estimated_time) {
  if (depth_ == 0) return Report(ncclInvalidUsage, "ncclGroupEnd: not in a group call.");
  if (--depth_ > 0) return ncclSuccess;
  ncclResult_t result = error_;
  // No model of this machine's speed is kept: a constant for each operation.
  if (estimated_time != nullptr && result == ncclSuccess)
    *estimated_time = 10.0f * static_cast<float>(ops_.size() + to_self_.size());
  Discard();
  Reset();
  return result;
}

ncclResult_t Group::Run() {
  if (ops_.empty()) return ncclSuccess;
  if (comms_[0]->settings.blocking || !doomed_.empty()) return RunAndSettle(ops_, comms_);
  auto job = std::make_unique<Job>();
  job->ops = std::move(ops_);
  job->comms = comms_;
  for (ncclComm* comm : comms_) comm->pending.fetch_add(1);
  if (!StartThread(job.get())) {
    RunJob(job.release());
    return ncclSuccess;
  }
  static_cast<void>(job.release());
  return ncclInProgress;
}

// The n-th send of a communicator to its own rank goes to its n-th receive.
ncclResult_t Group::CopyToSelf() {
  for (ToSelf& send : to_self_) {
    if (!send.is_send) continue;
    auto receive = std::find_if(to_self_.begin(), to_self_.end(), [&](const ToSelf& other) {
      return !other.is_send && !other.done && other.comm == send.comm;
    });
    if (receive == to_self_.end())
      return Report(ncclInvalidUsage, "Trying to send to self without a matching recv");
    CopyAcross(receive->buffer, send.buffer, std::min(send.bytes, receive->bytes));
    receive->done = send.done = true;
  }
  for (const ToSelf& item : to_self_)
    if (!item.done)
      return Report(ncclInvalidUsage, "Trying to recv to self without a matching send");
  return ncclSuccess;
}

void Group::Discard() {
  for (auto& op : ops_) {
    op->set_result(error_ != ncclSuccess ? error_ : ncclInvalidUsage);
    op->Close();
  }
  for (auto& op : ops_) op->Settle();
}

void Group::Reset() {
  error_ = ncclSuccess;
  ops_.clear();
  comms_.clear();
  to_self_.clear();
  doomed_.clear();
}

void StopOperations(ncclComm* comm) {
  comm->stopping.store(true, std::memory_order_seq_cst);
  while (comm->users.load() > 0 || comm->pending.load(std::memory_order_acquire) > 0) {
    if (comm->ready.load(std::memory_order_acquire)) comm->area.Ring(comm->rank);
    WaitForDoorbells({}, 100000);
  }
  comm->stopping.store(false, std::memory_order_seq_cst);
}

void DeleteComm(ncclComm* comm, RankState last_state) {
  RemoveComm(comm);
  while (comm->users.load() > 0 || comm->pending.load(std::memory_order_acquire) > 0)
    WaitForDoorbells({}, 100000);
  if (comm->ready.load(std::memory_order_acquire)) {
    comm->area.cell(comm->rank)
        .state.store(static_cast<uint32_t>(last_state), std::memory_order_release);
    comm->area.RingAll();
  }
  delete comm;
}

}  // namespace deja::loopback
