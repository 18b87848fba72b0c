#include "replayer/meet/recorded_meetings.h"

#include <utility>

#include "replayer/core/session.h"

namespace deja::replayer {

using api::LibcApi;

bool KeepsOrder(const Session& session) {
  return !session.options().is_late;
}

const RecordedInput* NextMeeting(Session& session, ThreadState& thread, LibcApi api, uint64_t key) {
  if (thread.recorded == kNone) return nullptr;
  const auto& by_key = session.plan().threads()[thread.recorded].by_key;
  const auto it = by_key.find({static_cast<uint32_t>(api), key});
  if (it == by_key.end()) return nullptr;
  const uint32_t next = thread.next_by_key[it->first];
  return next < it->second.size() ? &session.plan().inputs()[it->second[next]] : nullptr;
}

bool MadeMeetings(Session& session, const ThreadState& thread, LibcApi api, uint64_t key) {
  return thread.recorded != kNone && session.plan().threads()[thread.recorded].by_key.count(
                                         {static_cast<uint32_t>(api), key}) != 0;
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
