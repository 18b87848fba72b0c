#include "replayer/meet/collections.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <vector>

#include "common/runtime/errno_keeper.h"
#include "preload/process/guard.h"
#include "replayer/meet/other_threads.h"
#include "replayer/meet/recorded_meetings.h"
#include "replayer/process/without_interpreter.h"

namespace deja::replayer {

Collections::Collections(Session& session)
    : session_(session),
      begun_(std::make_unique<std::atomic<uint32_t>[]>(session.plan().threads().size())) {}

bool Collections::Keep(preload::Collector collector) {
  const bool keeps =
      collector != nullptr && KeepsOrder(session_) && !session_.plan().acting_collections().empty();
  collector_.store(keeps ? collector : nullptr);
  return keeps;
}

const RecordedCollection* Collections::Next(const ThreadState& thread) const {
  const auto& collections = session_.plan().threads()[thread.recorded].collections;
  return thread.next_collection < collections.size() ? &collections[thread.next_collection]
                                                     : nullptr;
}

bool Collections::HaveBegun(ThreadState& thread, uint64_t time_ns) const {
  const auto& acting = session_.plan().acting_collections();
  for (; thread.next_acting < acting.size(); ++thread.next_acting) {
    const ActingCollection& next = acting[thread.next_acting];
    if (next.time_ns >= time_ns) return true;
    if (next.thread != thread.recorded && begun_[next.thread].load() <= next.number) return false;
  }
  return true;
}

void Collections::AwaitCollections(ThreadState& thread, uint64_t time_ns) {
  if (HaveBegun(thread, time_ns)) return;
  const auto& acting = session_.plan().acting_collections();
  WithoutInterpreter apart(true);
  AwaitThreads(session_, thread, [&] {
    return HaveBegun(thread, time_ns) ? kNone : acting[thread.next_acting].thread;
  });
  apart.End();
  // Where the order gave way, once.
  while (!HaveBegun(thread, time_ns)) ++thread.next_acting;
}

void Collections::Collect(ThreadState& thread, preload::Collector collector, uint32_t generation) {
  const auto is_free = [&] {
    uint32_t none = kNone;
    return collecting_.compare_exchange_strong(none, thread.recorded);
  };
  if (!is_free()) {
    WithoutInterpreter apart(true);
    AwaitThreads(session_, thread, [&] { return is_free() ? kNone : collecting_.load(); });
    apart.End();
  }
  thread.collects = true;
  collector(static_cast<int>(generation));
  thread.collects = false;
  OnLook(thread);  // the program may have taken the callbacks away
  uint32_t own = thread.recorded;
  collecting_.compare_exchange_strong(own, kNone);
}

void Collections::GiveDue(ThreadState& thread, Place place) {
  const preload::Collector collector = collector_.load(std::memory_order_relaxed);
  if (collector == nullptr || thread.recorded == kNone || thread.collects) return;
  const ErrnoKeeper keep;
  const uint64_t made = session_.progress().CountedBy(thread.recorded);
  const auto meets_ns = session_.plan().met_by_then().TimeOf(
      thread.recorded, session_.progress().MeetingsOf(thread.recorded));
  if (place == Place::kUncounted && meets_ns) return;
  std::optional<uint32_t> generation;
  for (const RecordedCollection* next = Next(thread); next != nullptr; next = Next(thread)) {
    const bool is_past =
        next->events <= made || (place == Place::kMeeting && meets_ns && next->time_ns < *meets_ns);
    const bool is_early = !is_past && next->events == made + 1 && !next->acts;
    if (is_early ? !HaveBegun(thread, next->time_ns) : !is_past) break;
    if (!is_early) AwaitCollections(thread, next->time_ns);
    if (next->acts) {  // what others had made garbage by then, they have
      WithoutInterpreter apart(true);
      AwaitMeetings(session_, thread,
                    session_.plan().met_by_then().At(thread.recorded, next->time_ns));
      apart.End();
    }
    generation = std::max(generation.value_or(0), next->generation);
    ++thread.next_collection;
  }
  if (generation) Collect(thread, collector, *generation);
  if (meets_ns) AwaitCollections(thread, *meets_ns);
}

void Collections::OnOwn(ThreadState& thread, uint32_t generation) {
  if (collector_.load(std::memory_order_relaxed) == nullptr || thread.recorded == kNone ||
      thread.collects)
    return;
  const RecordedCollection* next = Next(thread);
  const uint64_t made = session_.progress().CountedBy(thread.recorded);
  if (next == nullptr || next->generation != generation || next->events > made + 1) return;
  ++thread.next_collection;
}

void Collections::OnLook(const ThreadState& thread) {
  if (thread.recorded != kNone) begun_[thread.recorded].store(thread.next_collection);
}

void Collections::EndThread(const ThreadState& thread) {
  if (thread.recorded == kNone) return;
  begun_[thread.recorded].store(std::numeric_limits<uint32_t>::max());
}

void GiveCollections(Session& session, Collections::Place place) {
  auto* collections = session.Find<Collections>();
  if (collections == nullptr) return;
  ThreadState* thread = nullptr;
  {
    const preload::Guard guard;
    thread = &session.Thread();
  }
  collections->GiveDue(*thread, place);
}

}  // namespace deja::replayer
