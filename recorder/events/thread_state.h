// What the recorder remembers of one thread, behind ThreadRecord::engine_state: the state of its
// stream, and a part for each room that keeps something of threads.
//
// Made on the thread's first event, in memory of its own; belongs to the thread. A part is made
// when its room first asks for it.
#ifndef DEJA_RECORDER_EVENTS_THREAD_STATE_H_
#define DEJA_RECORDER_EVENTS_THREAD_STATE_H_

#include <cstddef>
#include <cstdint>
#include <new>

#include "preload/process/threads.h"
#include "recorder/events/mapped_memory.h"

namespace deja::recorder {

// The rooms that keep something of each thread. A part is a type with `kPart`, one of these.
enum class ThreadPart : uint8_t { kNccl, kMpi, kMeet, kCount };

struct ThreadState {
  bool started = false;  // ThreadStart has been written
  bool ended = false;
  uint64_t last_ns = 0;     // time of its last event
  uint64_t clock_runs = 0;  // of its events
  // After a reading that is an event of its own: its source, and the sequence number that follows.
  uint8_t lone_source = 0;
  uint64_t lone_end = 0;
  void* staged = nullptr;  // EventWriter's, until the process is live
  void* parts[static_cast<size_t>(ThreadPart::kCount)] = {};
};

// Null when there is no memory.
ThreadState* StateOf(preload::ThreadRecord& self);

// How many events the thread has that are not runs of readings.
inline uint64_t EventsButClocks(const preload::ThreadRecord& self) {
  const auto* state = static_cast<const ThreadState*>(self.engine_state);
  return state == nullptr ? 0 : self.next_seq - state->clock_runs;
}

// What the room of `Part` keeps of the thread; null when there is no memory.
template <typename Part>
Part* PartOf(preload::ThreadRecord& self) {
  ThreadState* state = StateOf(self);
  if (state == nullptr) return nullptr;
  void*& part = state->parts[static_cast<size_t>(Part::kPart)];
  if (part == nullptr) {
    void* memory = MapZeroed(sizeof(Part));
    if (memory == nullptr) return nullptr;
    part = new (memory) Part;
  }
  return static_cast<Part*>(part);
}

// The same if the room has asked for it before, else null.
template <typename Part>
Part* PartIfAny(preload::ThreadRecord& self) {
  auto* state = static_cast<ThreadState*>(self.engine_state);
  return state == nullptr ? nullptr
                          : static_cast<Part*>(state->parts[static_cast<size_t>(Part::kPart)]);
}

}  // namespace deja::recorder

#endif  // DEJA_RECORDER_EVENTS_THREAD_STATE_H_
