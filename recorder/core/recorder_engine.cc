#include "recorder/core/recorder_engine.h"

#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <new>

#include "format/layout/mark.h"
#include "preload/cuda/device.h"
#include "preload/meet/lock_order.h"
#include "preload/stack/stack.h"
#include "recorder/events/mapped_memory.h"
#include "recorder/files/created_files.h"
#include "recorder/files/mapped_inputs.h"
#include "recorder/files/opened_input.h"

namespace deja::recorder {
namespace {

// Set in a child that the C library has forked. A child of _Fork or of a bare clone may do what a
// signal handler may; it is not recorded.
std::atomic<bool> g_forked_by_libc{false};

void AfterForkInChild() {
  g_forked_by_libc.store(true);
  AfterForkOfInputsInChild();
}

// What streams have been asked for is recorded before the process ends, unless they hang.
void DrainDevice() {
  constexpr uint32_t kMostMs = 2000;
  preload::TheDevice().Drain(kMostMs);
}

}  // namespace

void RecorderEngine::WatchForks() {
  pthread_atfork(BeforeForkOfInputs, nullptr, AfterForkInChild);
}

Recording* RecorderEngine::Active() {
  for (;;) {
    int state = state_.load(std::memory_order_acquire);
    if (state == kReady) {
      Recording* rec = recording_.load(std::memory_order_relaxed);
      return rec->off() ? nullptr : rec;
    }
    if (state == kOff) return nullptr;
    if (state == kNew && state_.compare_exchange_strong(state, kBeingMade)) break;
    sched_yield();  // another thread makes it: nothing of this one's may be missed
  }
  const ErrnoKeeper keep;
  StartEventClock();
  void* memory = MapZeroed(sizeof(Recording));
  if (memory == nullptr) {
    SayOnce("this process is not recorded: there is no memory for it");
    state_.store(kOff, std::memory_order_release);
    return nullptr;
  }
  auto* rec = new (memory) Recording(config_, make_log_);
  rec->SetForkedFrom(forked_from_);
  recording_.store(rec, std::memory_order_relaxed);
  state_.store(kReady, std::memory_order_release);
  return rec;
}

const char* RecorderEngine::MapPath(int dirfd, const char* path, preload::FileUse use,
                                    std::span<char> buffer) {
  Recording* rec = Active();
  if (rec == nullptr) return path;
  if (preload::Opens(use)) {
    const ErrnoKeeper keep;
    rec->input_files.Opening(*rec, dirfd, path);
  }
  if (use == preload::FileUse::kCreate || use == preload::FileUse::kMakeDir) {
    NoteCreation(*rec, dirfd, path);
    const ErrnoKeeper keep;
    rec->input_files.Looked(*rec, dirfd, path, use);
    return path;
  }
  const preload::FileUse asked = use;
  if (use == preload::FileUse::kLookAtLink) use = preload::FileUse::kLook;
  if (use == preload::FileUse::kResolve) use = preload::FileUse::kRead;
  const char* mapped = rec->machine_files.Map(*rec, dirfd, path, use, buffer);
  if (mapped == path) {
    const ErrnoKeeper keep;
    InputFiles& files = rec->input_files;
    if (asked == preload::FileUse::kResolve)
      files.Resolved(*rec, dirfd, path);
    else if (asked != preload::FileUse::kLookAtLink || !files.LookedAtLink(*rec, dirfd, path))
      files.Looked(*rec, dirfd, path, asked);
  }
  return mapped;
}

preload::FdObject* RecorderEngine::OnOpened(int dirfd, const char* path, int fd, int flags) {
  const ErrnoKeeper keep;
  Recording* rec = Active();
  return rec == nullptr ? nullptr : rec->input_files.Opened(*rec, dirfd, path, fd, flags);
}

void RecorderEngine::OnTaken(int dirfd, const char* path) {
  const ErrnoKeeper keep;
  if (Recording* rec = Active()) rec->input_files.Taken(*rec, dirfd, path);
}

void RecorderEngine::BeforeUnmap(void* memory, size_t size) {
  const ErrnoKeeper keep;
  if (Recording* rec = Active()) FinishMappings(*rec, memory, size);
}

void RecorderEngine::OnThreadEnd() {
  ErrnoKeeper keep;
  Recording* rec = recording_.load(std::memory_order_acquire);
  if (rec != nullptr && !rec->off()) rec->writer.EndThread();
}

void RecorderEngine::OnExit(int code, preload::ExitHow how) {
  ErrnoKeeper keep;
  Recording* rec = recording_.load(std::memory_order_acquire);
  // A vfork child that execs or exits does so in its parent's memory; it is not the parent's end.
  if (rec == nullptr || rec->off() || !rec->IsThisProcess()) return;
  if (code == preload::kExitCodeUnknown) return;  // the last handler of exit knows it
  InputFiles::FinishAll(*rec);
  DrainDevice();
  rec->choices.WriteLate();
  if (how != preload::ExitHow::kExec && rec->exit_recorded.exchange(true)) return;
  rec->writer.Write(format::ProcessExit{code, static_cast<uint32_t>(how)});
  // As in OnCrash: the other ranks should keep what they have of this moment.
  if (code != 0 && how != preload::ExitHow::kExec && rec->is_rank() && rec->writer.live())
    format::LeaveMarkIfNoneIsNew(rec->config.trace_dir,
                                 "a rank ended with an exit code other than 0");
}

void RecorderEngine::OnForkChild() {
  ErrnoKeeper keep;
  Recording* parents = recording_.exchange(nullptr);
  bool can_record = g_forked_by_libc.exchange(false);
  forked_from_ = can_record ? parents : nullptr;
  if (forked_from_ != nullptr) forked_from_->BeForked();
  EventWriter::ForgetThread(preload::Self());
  preload::ResetStacksInChild();
  preload::ForgetDeviceInChild();
  // The parent's objects stay where they are: other threads may have been inside them at the fork.
  if (parents != nullptr && parents->log() != nullptr) parents->log()->AbandonInChild();
  preload::WantLockOrder(config_.order_locks && can_record);
  state_.store(can_record ? kNew : kOff, std::memory_order_release);
}

int RecorderEngine::OnChildMade(uint32_t number, int pid) {
  if (Recording* rec = Active())
    rec->writer.Write(format::Child{number, static_cast<uint32_t>(pid), false, 0, 0});
  return pid;
}

void RecorderEngine::AfterWait(preload::WaitCall& call) {
  const bool by_signal = WIFSIGNALED(call.status);
  if ((!by_signal && !WIFEXITED(call.status)) || (call.options & WNOWAIT) != 0) return;
  Recording* rec = Active();
  if (rec == nullptr) return;
  format::Child child;
  child.pid = static_cast<uint32_t>(call.result);
  child.ended = true;
  child.exit_code = by_signal ? -1 : WEXITSTATUS(call.status);
  child.signal = by_signal ? static_cast<uint32_t>(WTERMSIG(call.status)) : 0;
  rec->writer.Write(child);
}

void RecorderEngine::BeginSingle() {
  ErrnoKeeper keep;
  if (config_.single_pid == 0 || config_.single_pid != static_cast<int>(syscall(SYS_getpid)))
    return;
  if (Recording* rec = Active()) rec->BecomeRank(0, 1);
}

void RecorderEngine::Finish() {
  Recording* rec = recording_.load(std::memory_order_acquire);
  if (rec != nullptr && rec->IsThisProcess() && !rec->off()) InputFiles::FinishAll(*rec);
  // `hostname`, `nproc`: all that they do is to look at the machine.
  if (rec != nullptr && rec->IsThisProcess() && rec->writer.has_identity()) rec->BecomeChild();
  if (rec != nullptr && rec->log() != nullptr && rec->IsThisProcess()) rec->log()->Finish();
}

}  // namespace deja::recorder
