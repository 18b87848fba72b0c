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

void AwaitMeetings(Session& session, const ThreadState& thread, const MeetingsByThread& met) {
  Progress& progress = session.progress();
  const auto is_behind = [&](const MeetingsByThread::value_type& other) {
    return progress.MeetingsOf(other.first) < other.second;
  };
  const auto behind = [&] { return std::find_if(met.begin(), met.end(), is_behind); };
  auto other = behind();
  if (other == met.end()) return;
  const Progress::Held held(progress, thread.recorded);
  const uint64_t patience = g_gave_way.load() ? Stillness::kLookNs : kPatienceNs;
  Pauses pauses(Stillness::kMs / 10);
  for (Stillness still(session); other != met.end() && !held.IsWanted(); other = behind()) {
    if (still.IsTimeToGiveUp(patience)) {
      if (!g_gave_way.exchange(true))
        Say(std::string("replay: thread ") + preload::Self().name + " goes on before thread " +
            session.plan().threads()[other->first].name +
            " is as far as it was, and nothing moves; what follows may differ");
      return;
    }
    pauses.Next();
    still.IsTimeToLook();
  }
}

}  // namespace deja::replayer
