#include "replayer/stillness.h"

#include <algorithm>

#include "preload/guard.h"
#include "replayer/meeting_list.h"
#include "replayer/session.h"

namespace deja::replayer {
namespace {

uint64_t ReadClock(clockid_t clock) {
  const preload::Guard guard;  // the reading is not the program's
  timespec now;
  clock_gettime(clock, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1000000000 + static_cast<uint64_t>(now.tv_nsec);
}

}  // namespace

uint64_t LiveNs() {
  return ReadClock(CLOCK_MONOTONIC);
}

timespec AsTimespec(uint64_t ns) {
  return {static_cast<time_t>(ns / 1000000000), static_cast<long>(ns % 1000000000)};
}

Stillness::Stillness(const std::string& scratch, const Session* session)
    : scratch_(scratch), session_(session), looked_(LiveNs()) {}

Stillness::Stillness(const Session& session) : Stillness(session.options().scratch, &session) {}

bool Stillness::IsTimeToLook() {
  const uint64_t now = LiveNs();
  const uint64_t passed = now - looked_;
  if (passed < kLookNs) return false;
  looked_ = now;
  const preload::Guard guard;
  const uint64_t used = ReadClock(CLOCK_PROCESS_CPUTIME_ID) + TimeUsedByAll(scratch_);
  const uint64_t activity = session_ == nullptr ? 0 : session_->activity();
  constexpr uint64_t kIdle = 5 * kMs;
  if (used > used_ + kIdle || activity != activity_)
    ns_ = 0;
  else
    ns_ += std::min(passed, 2 * kLookNs);
  used_ = used;
  activity_ = activity;
  return true;
}

}  // namespace deja::replayer
