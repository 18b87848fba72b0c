#include "replayer/meet/recorded_meetings.h"

#include <utility>

#include "replayer/core/session.h"

namespace deja::replayer {

using api::LibcApi;

bool KeepsOrder(const Session& session) {
  return !session.options().is_late;
}

std::span<const uint32_t> MeetingsOf(Session& session, const ThreadState& thread, LibcApi api,
                                     uint64_t key) {
  if (thread.recorded == kNone) return {};
  const auto& by_key = session.plan().threads()[thread.recorded].by_key;
  const auto it = by_key.find({static_cast<uint32_t>(api), key});
  return it == by_key.end() ? std::span<const uint32_t>{} : it->second;
}

const RecordedInput* NextMeeting(Session& session, ThreadState& thread, LibcApi api, uint64_t key) {
  const std::span<const uint32_t> made = MeetingsOf(session, thread, api, key);
  if (made.empty()) return nullptr;
  const uint32_t next = thread.next_by_key[{static_cast<uint32_t>(api), key}];
  return next < made.size() ? &session.plan().inputs()[made[next]] : nullptr;
}

bool MadeMeetings(Session& session, const ThreadState& thread, LibcApi api, uint64_t key) {
  return !MeetingsOf(session, thread, api, key).empty();
}

void ConsumeMeeting(Session& session, ThreadState& thread, LibcApi api, uint64_t key) {
  ++thread.next_by_key[{static_cast<uint32_t>(api), key}];
  session.progress().ConsumeMeeting(thread.recorded);
}

void DivergeAtMeeting(Session& session, ThreadState& thread, const char* api, std::string what) {
  Divergence divergence = session.divergences().New(DivergenceKind::kCall);
  divergence.api = api;
  divergence.what = std::move(what);
  session.divergences().Diverge(thread, std::move(divergence), 0);
}

}  // namespace deja::replayer
