#include "replayer/report/position.h"

extern "C" {

// Initialised before any code runs: gdb may look at it at any time.
__attribute__((visibility("default"))) constinit deja_replay_state_t deja_replay_state = [] {
  deja_replay_state_t state{};
  state.size = sizeof(deja_replay_state_t);
  return state;
}();

// Its only use is its address.
__attribute__((visibility("default"), noinline)) void deja_replay_stop(deja_replay_state_t* state,
                                                                       uint32_t reason) {
  state->reason = reason;
  asm volatile("" : : "r"(state), "r"(reason) : "memory");
}

}  // extern "C"

namespace deja::replayer {

void ForgetPosition() {
  deja_replay_state_t& state = deja_replay_state;
  state.watched = 0;
  state.stop_next = 0;
  state.stop_nan = 0;
  state.stop_seq = 0;
  state.stop_step = 0;
  state.stop_exit = 0;
  state.stop_place = 0;
  state.mute = 0;
  state.keep_images = 0;
  state.has_step = 0;
  state.operations = 0;
  state.digests_compared = 0;
  state.digests_different = 0;
  state.tensor_count = 0;
  state.registered_count = 0;
  state.frame_count = 0;
  state.thread_count = 0;
  for (deja_replay_thread& thread : state.threads) thread = {};
}

}  // namespace deja::replayer
