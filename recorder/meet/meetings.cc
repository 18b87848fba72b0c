// Where processes of a rank meet. Recorded are the order in which they took a semaphore, what waits
// for a pipe found, and the values of an eventfd.
//
// An acquisition is counted after the real call, so no lock of ours is held across it. The holder
// of the semaphore counts before it gives it back. If two hold it together, nothing depends on
// which one counts first.
#include <algorithm>
#include <cstring>

#include "api/libc_table.h"
#include "preload/engine/child_signal.h"
#include "preload/process/guard.h"
#include "recorder/core/child_signal_note.h"
#include "recorder/meet/meeting_recorder.h"

namespace deja::recorder {

// One that came before the call, not while it waits.
void MeetingRecorder::NoteChildSignal() {
  if (!preload::t_child_signal.came) return;
  const preload::Guard guard;
  const ErrnoKeeper keep;
  WriteChildSignal(recorder_);
}

void MeetingRecorder::OnAcquire(preload::AcquireCall& call) {
  NoteChildSignal();
  const bool can_be_ended = call.semaphore != nullptr && !call.tries;
  if (can_be_ended && GiveChildSignalAtWait()) {
    call.result = -1;
    call.error = EINTR;
  } else {
    call.Real();
    // Else it is time: the program asks again.
    if (call.result != 0 && call.error == EINTR && !preload::TakeChildSignal()) return;
  }
  const preload::Guard guard;
  const ErrnoKeeper keep;
  Recording* rec = recorder_.Active();
  if (rec == nullptr) return;
  format::Input input;
  input.api = static_cast<uint32_t>(api::LibcApi::ksem_wait);
  input.key = call.key;
  input.error = static_cast<uint32_t>(call.error);
  input.result = -1;
  if (call.result == 0) input.result = call.order->fetch_add(1);
  rec->writer.Write(input);
  rec->RelieveStaging();
  WriteChildSignal(recorder_);
}

void MeetingRecorder::OnPoll(preload::PollCall& call) {
  NoteChildSignal();
  bool is_interrupted = GiveChildSignalAtWait();
  if (is_interrupted) {
    call.result = -1;
    errno = EINTR;
  } else {
    call.Real();
    is_interrupted = call.result < 0 && errno == EINTR && preload::TakeChildSignal();
    if (call.result < 0 && !is_interrupted) return;
  }
  const preload::Guard guard;
  const ErrnoKeeper keep;
  Recording* rec = recorder_.Active();
  if (rec == nullptr) return;
  constexpr nfds_t kMost = 64;
  char found[kMost * (sizeof(int16_t) + 1)];
  size_t size = 0;
  const nfds_t count = call.result <= 0 ? 0 : std::min(call.count, kMost);
  for (nfds_t i = 0; i < count; ++i) {
    std::memcpy(found + size, &call.descriptors[i].revents, sizeof(int16_t));
    size += sizeof(int16_t);
  }
  if (call.told != nullptr && count != 0) {
    const size_t told = std::min(static_cast<nfds_t>(call.result), count);
    std::memcpy(found + size, call.told, told);
    size += told;
  }
  format::Input input;
  input.api = static_cast<uint32_t>(api::LibcApi::kpoll);
  input.key = call.key;
  input.result = call.result;
  if (is_interrupted) input.error = EINTR;
  input.data = {found, size};
  rec->writer.Write(input);
  rec->RelieveStaging();
  WriteChildSignal(recorder_);
}

void MeetingRecorder::OnCount(preload::CountCall& call) {
  call.Real();
  if (call.error == EINTR) return;
  const preload::Guard guard;
  const ErrnoKeeper keep;
  Recording* rec = recorder_.Active();
  if (rec == nullptr) return;
  format::Input input;
  input.api = static_cast<uint32_t>(api::LibcApi::keventfd);
  input.error = static_cast<uint32_t>(call.error);
  input.result = static_cast<int64_t>(call.value);
  rec->writer.Write(input);
  rec->RelieveStaging();
}

}  // namespace deja::recorder
