// Locks of the program: which thread took which in what order.
//
// An acquisition is counted after the real call, while the thread has the lock. So the counts are
// in the order of the acquisitions without a lock of ours. Several threads can have read locks and
// semaphores at once. None has done anything between its acquisition and its count, so the order of
// the counts is a possible one, too.
#include "common/runtime/errno_keeper.h"
#include "preload/meet/lock_order.h"
#include "preload/process/guard.h"
#include "recorder/meet/meeting_recorder.h"

namespace deja::recorder {
namespace {

using format::ClockSource;
using format::LockUse;
using preload::LockCall;

void WriteTurn(EventWriter& writer, LockUse use, const void* lock) {
  // A turn that no stream has would be waited for.
  if (!writer.IsOpen()) return;
  const uint16_t counter = preload::LockCounter(lock);
  const uint64_t turn = preload::TurnsOf(counter).fetch_add(1, std::memory_order_relaxed);
  writer.WriteClock(format::SourceOfTurn(counter), format::ValueOfTurn(use, counter, turn));
}

void WriteOutcome(EventWriter& writer, const LockCall& call, int code) {
  writer.WriteClock(ClockSource::kLockOutcome,
                    format::ValueOfOutcome(call.use, preload::LockCounter(call.lock), code));
}

void WriteLock(EventWriter& writer, const LockCall& call) {
  switch (call.use) {
    case LockUse::kOnce:
      if (!call.runs) WriteOutcome(writer, call, 0);
      return;
    case LockUse::kBarrier:
      return WriteOutcome(writer, call, call.result);
    case LockUse::kCondition:
      if (call.result == call.timed_out) {
        WriteOutcome(writer, call, call.result);
        return WriteTurn(writer, call.use, call.lock);
      }
      break;
    case LockUse::kSemaphore:
      if (call.result == EINTR) return;  // time; the program asks again
      break;
    default:
      break;
  }
  // The owner of a robust mutex that died has left it to this thread.
  if (call.result == 0 || call.result == EOWNERDEAD) [[likely]]
    return WriteTurn(writer, call.use, call.lock);
  WriteOutcome(writer, call, call.result);
}

// Something was written. A process that is not a rank (yet) keeps it in its own memory, up to a
// point.
void RelieveStaging(Recording& recording) {
  if (recording.writer.live()) [[likely]]
    return;
  const ErrnoKeeper keep;
  recording.BecomeChild();
  recording.RelieveStaging();
}

}  // namespace

void LockRecorder::OnThreadsMeet() {
  const preload::Guard guard;
  if (recorder_.Active() != nullptr) preload::AskForLockOrder();
}

bool LockRecorder::OrdersLoops() {
  const preload::Guard guard;
  Recording* rec = recorder_.Active();
  if (rec == nullptr) return false;
  rec->writer.Write(format::Note{preload::kLoopsAreOrdered});
  return true;
}

void LockRecorder::OnLock(LockCall& call) {
  call.real(call);
  const preload::Guard guard;
  Recording* rec = recorder_.Active();
  if (rec == nullptr) return;
  WriteLock(rec->writer, call);
  RelieveStaging(*rec);
}

// Before the routine runs: it may do anything, and not come back.
void LockRecorder::OnOnceBegins(LockCall& call) {
  call.runs = true;
  const preload::Guard guard;
  Recording* rec = recorder_.Active();
  if (rec == nullptr) return;
  WriteTurn(rec->writer, call.use, call.lock);
  RelieveStaging(*rec);
}

}  // namespace deja::recorder
