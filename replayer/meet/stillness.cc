#include "replayer/meet/stillness.h"

#include <sys/syscall.h>

#include <algorithm>
#include <atomic>
#include <utility>

#include "common/runtime/clock_ns.h"
#include "common/runtime/raw_syscall.h"
#include "preload/process/guard.h"
#include "replayer/core/session.h"
#include "replayer/forks/chosen_child.h"
#include "replayer/meet/meeting_list.h"

namespace deja::replayer {
namespace {

constinit std::atomic<uint64_t> g_haste{1};

}  // namespace

uint64_t MonotonicNs() {
  const preload::Guard guard;  // the reading is not the program's
  return ClockNs(CLOCK_MONOTONIC);
}

timespec SpanOf(uint64_t ns) {
  return {static_cast<time_t>(ns / 1000000000), static_cast<long>(ns % 1000000000)};
}

void Pauses::Next() {
  const timespec span = SpanOf(ns_);
  RawSyscall(SYS_nanosleep, reinterpret_cast<long>(&span), 0);
  ns_ = std::min(2 * ns_, Stillness::kTickNs);
}

void Stillness::SetHaste(uint64_t haste) {
  constexpr uint64_t kMost = 1000;
  g_haste.store(std::clamp<uint64_t>(haste, 1, kMost), std::memory_order_relaxed);
}

Stillness::Stillness(const std::string& scratch, const Session* session)
    : scratch_(scratch), session_(session), in_debugger_(IsInDebugger()), looked_(MonotonicNs()) {}

Stillness::Stillness(const Session& session) : Stillness(session.options().scratch, &session) {}

bool Stillness::IsTimeToTell() {
  if (ns() < kTellNs || std::exchange(told_, true)) return false;
  // The process that watches from outside says less.
  if (session_ != nullptr) session_->progress().CountServed();
  return true;
}

bool Stillness::IsTimeToLook() {
  const uint64_t now = MonotonicNs();
  const uint64_t passed = now - looked_;
  if (passed < kLookNs) return false;
  looked_ = now;
  const preload::Guard guard;
  const uint64_t used = TimeUsedByAll(scratch_);  // this process is one of them
  const uint64_t activity = session_ == nullptr ? 0 : session_->progress().activity();
  constexpr uint64_t kIdle = 5 * kMs;
  if (used > used_ + kIdle || activity != activity_)
    ns_ = 0;
  else
    ns_ += std::min(passed, 2 * kLookNs) * g_haste.load(std::memory_order_relaxed);
  used_ = used;
  activity_ = activity;
  return true;
}

}  // namespace deja::replayer
