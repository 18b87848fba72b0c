#include "replayer/inputs/input_replayer.h"

#include "api/libc_table.h"
#include "common/runtime/errno_keeper.h"
#include "preload/process/process_name.h"
#include "replayer/clocks/serve_clocks.h"
#include "replayer/inputs/serve_inputs.h"

namespace deja::replayer {

void InputReplayer::OnInput(preload::InputCall& call) {
  if (replayer_.session == nullptr) return ServeUnrecorded(call);
  ServeInput(*replayer_.session, replayer_.session->Thread(), call);
}

// In a child of which nothing is recorded: it looked only at its identity, or its recording is
// lost.
void InputReplayer::ServeUnrecorded(preload::InputCall& call) {
  if (api::InputKindOf(call.api) != api::InputKind::kIdentity) {
    replayer_.ReportLive();
    return call.Real();
  }
  if (!preload::HasProcessName()) return call.Real();
  const preload::ProcessName& name = preload::OwnProcessName();
  const auto api = static_cast<api::LibcApi>(call.api);
  int value = 0;
  if (api == api::LibcApi::kgetpid || api == api::LibcApi::kgettid)
    value = name.recorded_pid;
  else if (api == api::LibcApi::kgetppid)
    value = name.recorded_parent;
  else if (replayer_.inherited != nullptr && ServeIdentity(*replayer_.inherited, call))
    return;
  if (value == 0) return call.Real();
  call.result = value;
}

int64_t InputReplayer::OnClock(format::ClockSource source, int64_t live_ns) {
  const ErrnoKeeper keep;
  if (replayer_.session == nullptr) {
    replayer_.ReportLive();
    return live_ns;
  }
  return ServeClock(*replayer_.session, replayer_.session->Thread(), source, live_ns);
}

void InputReplayer::OnUnseenReading(format::ClockSource source, preload::UnseenReading made_for) {
  if (replayer_.session != nullptr)
    TakeClockBack(*replayer_.session, replayer_.session->Thread(), source, made_for);
}

bool InputReplayer::TellsPythonLocks() {
  return replayer_.session != nullptr && !replayer_.session->plan().names_python_locks;
}

int64_t InputReplayer::DeadlineOffsetNs(int clock, int64_t deadline_ns) {
  return replayer_.session == nullptr
             ? 0
             : DeadlineOffset(*replayer_.session, replayer_.session->Thread(), clock, deadline_ns);
}

}  // namespace deja::replayer
