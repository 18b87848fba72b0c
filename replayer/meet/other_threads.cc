#include "replayer/meet/other_threads.h"

#include <algorithm>

#include "replayer/core/session.h"
#include "replayer/meet/stillness.h"

namespace deja::replayer {

void AwaitMeetings(Session& session, const ThreadState& thread, const MeetingsByThread& met) {
  Progress& progress = session.progress();
  const auto is_done = [&] {
    return std::all_of(met.begin(), met.end(), [&](const auto& other) {
      return progress.MeetingsOf(other.first) >= other.second;
    });
  };
  if (is_done()) return;
  const Progress::Held held(progress, thread.recorded);
  Pauses pauses(Stillness::kMs / 10);
  for (Stillness still(session); !is_done() && !held.IsWanted() && still.ns() < Stillness::kLeftNs;
       still.IsTimeToLook())
    pauses.Next();
}

}  // namespace deja::replayer
