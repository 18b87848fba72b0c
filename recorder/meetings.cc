// Where processes of a rank meet: who took a semaphore in which order, and what a wait for a pipe
// found.
//
// An acquisition is counted behind the real call, so no lock of ours is held across it: who holds
// the semaphore counts before it gives it back, and between two that hold it together nothing
// depends on which one counts first.
#include <algorithm>

#include "preload/api/libc_table.h"
#include "preload/guard.h"
#include "recorder/recorder_engine.h"

namespace deja::recorder {

void RecorderEngine::OnAcquire(preload::AcquireCall& call) {
  call.Real();
  if (call.result != 0 && call.error == EINTR) return;  // time; the program asks again
  const preload::Guard guard;
  const ErrnoKeeper keep;
  Recording* rec = Active();
  if (rec == nullptr) return;
  format::Input input;
  input.api = static_cast<uint32_t>(preload::LibcApi::ksem_wait);
  input.key = call.key;
  input.error = static_cast<uint32_t>(call.error);
  input.result = -1;
  if (call.result == 0) input.result = call.order->fetch_add(1);
  rec->writer.Write(input);
  rec->RelieveStaging();
}

void RecorderEngine::OnPoll(preload::PollCall& call) {
  call.Real();
  if (call.result < 0) return;
  const preload::Guard guard;
  const ErrnoKeeper keep;
  Recording* rec = Active();
  if (rec == nullptr) return;
  constexpr nfds_t kMost = 64;
  int16_t found[kMost];
  const size_t count = call.result == 0 ? 0 : std::min(call.count, kMost);
  for (size_t i = 0; i < count; ++i) found[i] = call.descriptors[i].revents;
  format::Input input;
  input.api = static_cast<uint32_t>(preload::LibcApi::kpoll);
  input.result = call.result;
  input.data = {reinterpret_cast<const char*>(found), count * sizeof found[0]};
  rec->writer.Write(input);
  rec->RelieveStaging();
}

}  // namespace deja::recorder
