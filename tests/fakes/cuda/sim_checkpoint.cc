// Process checkpoints, as driver 570 has them. The process is locked: calls wait, and the work on
// its streams is done. Then its device memory goes to the host and is given back; and the other way
// round. Any process that shares the board (sim_board.h) asks for them, and a thread of the process
// itself does them. CUDA_SIM_CHECKPOINT=no: they are not supported.
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <thread>

#include "tests/fakes/cuda/sim_board.h"
#include "tests/fakes/cuda/sim_gate.h"
#include "tests/fakes/cuda/sim_memory.h"
#include "tests/fakes/cuda/sim_stream.h"

#pragma GCC visibility push(default)
#include "tests/fakes/cuda/cuda_sim.h"
#pragma GCC visibility pop

namespace cusim {
namespace {

using Time = std::chrono::steady_clock;

enum What { kLock, kCheckpoint, kRestore, kUnlock };

struct Gate {
  std::mutex mutex;
  std::condition_variable changed;
  int inside = 0;
  bool closed = false;
};

Gate& TheGate() {
  static auto* gate = new Gate;  // streams and threads outlive static destructors
  return *gate;
}

thread_local int t_depth = 0;
thread_local bool t_in_host_function = false;

CUresult Lock(Slot& slot) {
  const uint32_t timeout_ms = slot.timeout_ms.load();
  const auto deadline = timeout_ms == 0 ? Time::time_point::max()
                                        : Time::now() + std::chrono::milliseconds(timeout_ms);
  if (!CloseGate(deadline)) return CUDA_ERROR_NOT_READY;
  while (StreamsHaveWork()) {
    if (Time::now() >= deadline) {
      OpenGate();
      return CUDA_ERROR_NOT_READY;
    }
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
  slot.state.store(CU_PROCESS_STATE_LOCKED);
  return CUDA_SUCCESS;
}

CUresult Do(Slot& slot, What what) {
  const int state = slot.state.load();
  const int needed = what == kLock      ? CU_PROCESS_STATE_RUNNING
                     : what == kRestore ? CU_PROCESS_STATE_CHECKPOINTED
                                        : CU_PROCESS_STATE_LOCKED;
  if (state != needed) return CUDA_ERROR_ILLEGAL_STATE;
  if (what == kLock) return Lock(slot);
  if (what == kCheckpoint) {
    TakeMemoryOut();
    slot.state.store(CU_PROCESS_STATE_CHECKPOINTED);
  } else if (what == kRestore) {
    if (!BringMemoryBack()) return CUDA_ERROR_OUT_OF_MEMORY;
    slot.state.store(CU_PROCESS_STATE_LOCKED);
  } else {
    slot.state.store(CU_PROCESS_STATE_RUNNING);
    OpenGate();
  }
  return CUDA_SUCCESS;
}

void Serve() {
  Slot& slot = OwnSlot();
  for (uint32_t done = slot.answer.load();;) {
    const uint32_t asked = slot.request.load();
    if (asked == done) {
      WaitOn(slot.request, asked, 1000);
      continue;
    }
    slot.result.store(Do(slot, static_cast<What>(slot.what.load())));
    done = asked;
    slot.answer.store(done);
    WakeAll(slot.answer);
  }
}

// Waits for the answer. One process asks another one at a time.
CUresult Ask(int pid, What what, unsigned int timeout_ms) {
  const char* supported = std::getenv("CUDA_SIM_CHECKPOINT");
  if (supported != nullptr && std::strcmp(supported, "no") == 0) return CUDA_ERROR_NOT_SUPPORTED;
  Slot* slot = DeviceLimit() == 0 ? nullptr : FindSlot(pid);
  if (slot == nullptr) return CUDA_ERROR_INVALID_VALUE;
  slot->what.store(what);
  slot->timeout_ms.store(timeout_ms);
  const uint32_t asked = slot->request.fetch_add(1) + 1;
  WakeAll(slot->request);
  for (;;) {
    const uint32_t answered = slot->answer.load();
    if (answered == asked) return static_cast<CUresult>(slot->result.load());
    if (slot->pid.load() != pid || !IsAlive(pid)) return CUDA_ERROR_INVALID_VALUE;
    WaitOn(slot->answer, answered, 50);
  }
}

}  // namespace

HostFunction::HostFunction() {
  t_in_host_function = true;
}

HostFunction::~HostFunction() {
  t_in_host_function = false;
}

ApiCall::ApiCall() {
  if (t_in_host_function) {
    std::fprintf(stderr, "cuda_sim: a host function calls the driver\n");
    std::abort();
  }
  if (t_depth++ != 0) return;
  Gate& gate = TheGate();
  std::unique_lock hold(gate.mutex);
  gate.changed.wait(hold, [&] { return !gate.closed; });
  ++gate.inside;
}

ApiCall::~ApiCall() {
  if (--t_depth != 0) return;
  Gate& gate = TheGate();
  std::lock_guard hold(gate.mutex);
  if (--gate.inside == 0) gate.changed.notify_all();
}

bool CloseGate(Time::time_point deadline) {
  Gate& gate = TheGate();
  std::unique_lock hold(gate.mutex);
  gate.closed = true;
  const auto all_out = [&] { return gate.inside == 0; };
  if (deadline == Time::time_point::max())
    gate.changed.wait(hold, all_out);
  else if (!gate.changed.wait_until(hold, deadline, all_out))
    gate.closed = false;
  gate.changed.notify_all();
  return gate.closed;
}

void OpenGate() {
  Gate& gate = TheGate();
  std::lock_guard hold(gate.mutex);
  gate.closed = false;
  gate.changed.notify_all();
}

void ServeCheckpoints() {
  if (DeviceLimit() == 0) return;
  OwnSlot();
  std::thread(&Serve).detach();
}

}  // namespace cusim

extern "C" {

CUresult cuCheckpointProcessGetState(int pid, CUprocessState* state) {
  cusim::Slot* slot = cusim::DeviceLimit() == 0 ? nullptr : cusim::FindSlot(pid);
  if (slot == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *state = static_cast<CUprocessState>(slot->state.load());
  return CUDA_SUCCESS;
}

CUresult cuCheckpointProcessLock(int pid, CUcheckpointLockArgs* args) {
  return cusim::Ask(pid, cusim::kLock, args == nullptr ? 0 : args->timeoutMs);
}

CUresult cuCheckpointProcessCheckpoint(int pid, CUcheckpointCheckpointArgs*) {
  return cusim::Ask(pid, cusim::kCheckpoint, 0);
}

CUresult cuCheckpointProcessRestore(int pid, CUcheckpointRestoreArgs*) {
  return cusim::Ask(pid, cusim::kRestore, 0);
}

CUresult cuCheckpointProcessUnlock(int pid, CUcheckpointUnlockArgs*) {
  return cusim::Ask(pid, cusim::kUnlock, 0);
}

}  // extern "C"
