// ThreadState: how far a thread of the program is in its recording, and what rooms keep of it.
//
// Made with the thread's first call, never freed; belongs to the thread. Session::Thread finds it.
#ifndef DEJA_REPLAYER_CORE_THREAD_STATE_H_
#define DEJA_REPLAYER_CORE_THREAD_STATE_H_

#include <cstdint>
#include <map>

#include "replayer/core/parts.h"
#include "replayer/plan/replay_plan.h"

namespace deja::replayer {

struct ThreadState {
  uint32_t recorded = kNone;  // position in plan.threads()
  uint32_t slot = kNone;      // in deja_replay_state.threads
  uint32_t next_call = 0;
  uint32_t next_snapshot = 0;
  uint32_t next_end = 0;         // of processes
  uint32_t next_collection = 0;  // of Python's garbage, on this thread
  uint32_t next_acting = 0;      // in ReplayPlan::acting_collections()
  bool collects = false;         // such a collection runs
  std::map<uint32_t, uint32_t> next_by_api;
  std::map<uint32_t, uint32_t> next_entropy;
  std::map<InputKey, uint32_t> next_by_key;
  uint64_t entropy_served = 0;
  bool started_late = false;  // its positions are after the checkpoint

  // What the room of `Part` keeps of the thread.
  template <typename Part>
  Part& Of() {
    Part* part = parts.Find<Part>();
    if (part == nullptr) parts.Set(part = new Part());  // never freed, as the thread's state
    return *part;
  }

  Parts<ThreadPart> parts;
};

}  // namespace deja::replayer

#endif  // DEJA_REPLAYER_CORE_THREAD_STATE_H_
