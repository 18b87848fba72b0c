// Where Python's collector of reference cycles runs, by its place among the thread's events. Small
// generations are collected often: of those between two events the oldest one is noted alone.
#include <algorithm>

#include "recorder/events/thread_state.h"
#include "recorder/meet/meeting_recorder.h"

namespace deja::recorder {

namespace {

struct Collections {
  static constexpr ThreadPart kPart = ThreadPart::kMeet;
  bool is_noted = false;    // one that began after as many events
  uint64_t noted_at = 0;    // EventsButClocks with that note
  uint64_t began_at = 0;    // the same as the last one began
  uint64_t began_ns = 0;    // and when
  uint32_t generation = 0;  // of the note
};

}  // namespace

void MeetingRecorder::OnCollection(const preload::Collection& collection) {
  Recording* rec = recorder_.Active();
  if (rec == nullptr) return;
  preload::ThreadRecord& self = preload::Self();
  auto* seen = PartOf<Collections>(self);
  if (seen == nullptr) return;
  const uint64_t events = EventsButClocks(self);
  if (collection.ended && events == seen->began_at) return;
  const bool is_noted =
      seen->is_noted && seen->noted_at == events && seen->generation >= collection.generation;
  const uint64_t now_ns = EventWriter::NowNs(self);
  if (collection.ended || !is_noted) {
    const uint64_t lasted_ns = collection.ended ? now_ns - seen->began_ns : 0;
    rec->writer.Write(format::GarbageCollection{collection.generation, collection.ended,
                                                collection.has_threads, lasted_ns});
    rec->RelieveStaging();
  }
  if (collection.ended) return;
  seen->began_at = EventsButClocks(self);
  seen->began_ns = now_ns;
  if (is_noted) return;
  seen->is_noted = true;
  seen->generation = collection.generation;
  seen->noted_at = seen->began_at;
}

void MeetingRecorder::OnCollectionLooks() {
  auto* seen = PartIfAny<Collections>(preload::Self());
  if (seen != nullptr) seen->began_ns = EventWriter::NowNs(preload::Self());
}

}  // namespace deja::recorder
