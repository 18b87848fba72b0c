#include "replayer/meet/other_threads.h"

#include <algorithm>
#include <atomic>
#include <string>

#include "preload/process/threads.h"
#include "replayer/core/ending.h"
#include "replayer/core/session.h"
#include "replayer/meet/stillness.h"

namespace deja::replayer {
namespace {

// A thread that sends a signal may wait for two seconds in which nothing moves.
constexpr uint64_t kPatienceNs = 3'000 * Stillness::kMs;

// One has gone on alone, so that others will not be as they were.
constinit std::atomic<bool> g_gave_way{false};

}  // namespace

void AwaitThreads(Session& session, const ThreadState& thread,
                  const std::function<uint32_t()>& behind) {
  uint32_t other = behind();
  if (other == kNone) return;
  const Progress::Held held(session.progress(), thread.recorded);
  const uint64_t patience = g_gave_way.load() ? Stillness::kLookNs : kPatienceNs;
  Pauses pauses(Stillness::kMs / 10);
  for (Stillness still(session); other != kNone && !held.IsWanted(); other = behind()) {
    if (still.IsTimeToGiveUp(patience)) {
      if (!g_gave_way.exchange(true))
        Say(std::string("replay: thread ") + preload::Self().name + " goes on before thread " +
            session.plan().threads()[other].name +
            " is as far as it was, and nothing moves; what follows may differ");
      return;
    }
    pauses.Next();
    still.IsTimeToLook();
  }
}

void AwaitMeetings(Session& session, const ThreadState& thread, const MeetingsByThread& met) {
  AwaitThreads(session, thread, [&] {
    const auto other = std::find_if(met.begin(), met.end(), [&](const auto& one) {
      return session.progress().MeetingsOf(one.first) < one.second;
    });
    return other == met.end() ? kNone : other->first;
  });
}

}  // namespace deja::replayer
