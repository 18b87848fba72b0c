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
  const bool keeps = collector != nullptr && KeepsOrder(session_) &&
                     !session_.plan().acting_collections().empty();
  collector_.store(keeps ? collector : nullptr);
  return keeps;
}

const RecordedCollection* Collections::Next(const ThreadState& thread) const {
  const auto& collections = session_.plan().threads()[thread.recorded].collections;
  return thread.next_collection < collections.size() ? &collections[thread.next_collection]
                                                     : nullptr;
}

void Collections::AwaitCollections(ThreadState& thread) {
  const auto& acting = session_.plan().acting_collections();
  if (thread.next_acting >= acting.size()) return;
  const auto time_ns = session_.plan().met_by_then().TimeOf(
      thread.recorded, session_.progress().MeetingsOf(thread.recorded));
  const auto is_before = [&] {
    return thread.next_acting < acting.size() && time_ns &&
           acting[thread.next_acting].time_ns < *time_ns;
  };
  const auto has_begun = [&] {
    const ActingCollection& next = acting[thread.next_acting];
    return next.thread == thread.recorded || begun_[next.thread].load() > next.number;
  };
  for (; is_before(); ++thread.next_acting) {
    if (has_begun()) continue;
    WithoutInterpreter apart(true);
    AwaitThreads(session_, thread,
                 [&] { return has_begun() ? kNone : acting[thread.next_acting].thread; });
    apart.End();
  }
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
  begun_[thread.recorded].store(thread.next_collection);
  thread.collects = true;
  collector(static_cast<int>(generation));
  thread.collects = false;
  uint32_t own = thread.recorded;
  collecting_.compare_exchange_strong(own, kNone);
}

void Collections::GiveDue(ThreadState& thread) {
  const preload::Collector collector = collector_.load(std::memory_order_relaxed);
  if (collector == nullptr || thread.recorded == kNone || thread.collects) return;
  const ErrnoKeeper keep;
  const uint64_t made = session_.progress().CountedBy(thread.recorded);
  std::optional<uint32_t> generation;
  for (const RecordedCollection* next = Next(thread); next != nullptr; next = Next(thread)) {
    if (next->events > made + (next->acts ? 0 : 1)) break;
    generation = std::max(generation.value_or(0), next->generation);
    ++thread.next_collection;
    if (!next->acts) continue;
    // What others had made garbage by then, they have.
    WithoutInterpreter apart(true);
    AwaitMeetings(session_, thread,
                  session_.plan().met_by_then().At(thread.recorded, next->time_ns));
    apart.End();
  }
  if (generation) Collect(thread, collector, *generation);
  AwaitCollections(thread);
}

void Collections::OnOwn(ThreadState& thread, uint32_t generation) {
  if (collector_.load(std::memory_order_relaxed) == nullptr || thread.recorded == kNone ||
      thread.collects)
    return;
  const RecordedCollection* next = Next(thread);
  const uint64_t made = session_.progress().CountedBy(thread.recorded);
  if (next == nullptr || next->generation != generation || next->events > made + 1) return;
  begun_[thread.recorded].store(++thread.next_collection);
}

void Collections::EndThread(const ThreadState& thread) {
  if (thread.recorded == kNone) return;
  begun_[thread.recorded].store(std::numeric_limits<uint32_t>::max());
}

void GiveCollections(Session& session) {
  auto* collections = session.Find<Collections>();
  if (collections == nullptr) return;
  ThreadState* thread = nullptr;
  {
    const preload::Guard guard;
    thread = &session.Thread();
  }
  collections->GiveDue(*thread);
}

}  // namespace deja::replayer
