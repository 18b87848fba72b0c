#include "replayer/stillness.h"

#include <utility>

#include "preload/guard.h"
#include "replayer/chosen_child.h"
#include "replayer/meeting_list.h"
#include "replayer/session.h"

namespace deja::replayer {

uint64_t MonotonicNs() {
  const preload::Guard guard;  // the reading is not the program's
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1000000000 + static_cast<uint64_t>(now.tv_nsec);
}

timespec SpanOf(uint64_t ns) {
  return {static_cast<time_t>(ns / 1000000000), static_cast<long>(ns % 1000000000)};
}

Stillness::Stillness(const std::string& scratch, const Session* session)
    : scratch_(scratch), session_(session), begun_(MonotonicNs()), moved_(begun_) {}

Stillness::Stillness(const Session& session) : Stillness(session.options().scratch, &session) {}

bool Stillness::IsTimeToLook() {
  constexpr uint64_t kLookNs = 200'000'000;
  constexpr uint64_t kIdleNs = 5'000'000;
  const uint64_t now = MonotonicNs();
  if (now - looked_ < kLookNs || now - begun_ < kLookNs) return false;
  looked_ = now;
  const uint64_t used = TimeUsedByAll(scratch_);
  const uint64_t activity = session_ == nullptr ? 0 : session_->activity();
  if (used > used_ + kIdleNs || activity != activity_ || IsInDebugger()) moved_ = now;
  used_ = used;
  activity_ = activity;
  return true;
}

bool Stillness::IsTimeToTell() {
  return ns() >= kTellNs && !std::exchange(told_, true);
}

}  // namespace deja::replayer
