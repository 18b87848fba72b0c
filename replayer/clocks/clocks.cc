// Clocks and what is computed from them: readings, deadlines, and the times that processes have
// used.
#include <sys/resource.h>
#include <sys/times.h>

#include <algorithm>
#include <cstring>
#include <string>

#include "api/libc_table.h"
#include "replayer/clocks/serve_clocks.h"

namespace deja::replayer {

using api::LibcApi;
using preload::InputCall;

namespace {

// What times() produces, as its hook lays it out.
struct Times {
  clock_t ticks;
  tms used;
};

template <typename T>
T Load(std::string_view bytes) {
  T value{};
  std::memcpy(&value, bytes.data(), std::min(bytes.size(), sizeof value));
  return value;
}

timeval Advanced(const timeval& told, const timeval& then, const timeval& now) {
  constexpr int64_t kMicro = 1000000;
  const auto us = [](const timeval& t) {
    return static_cast<int64_t>(static_cast<uint64_t>(t.tv_sec) * kMicro +
                                static_cast<uint64_t>(t.tv_usec));
  };
  const int64_t value = us(told) + std::max<int64_t>(us(now) - us(then), 0);
  return {value / kMicro, value % kMicro};
}

// The usage that was served last, and as much more as has been used since.
std::string Advanced(uint32_t api, std::string_view told, std::string_view then,
                     std::string_view now) {
  std::string bytes(told);
  if (static_cast<LibcApi>(api) == LibcApi::kgetrusage) {
    auto value = Load<rusage>(told);
    value.ru_utime =
        Advanced(value.ru_utime, Load<rusage>(then).ru_utime, Load<rusage>(now).ru_utime);
    value.ru_stime =
        Advanced(value.ru_stime, Load<rusage>(then).ru_stime, Load<rusage>(now).ru_stime);
    bytes.assign(reinterpret_cast<const char*>(&value), sizeof value);
  } else {
    auto value = Load<Times>(told);
    const auto before = Load<Times>(then);
    const auto after = Load<Times>(now);
    value.ticks += after.ticks - before.ticks;
    value.used.tms_utime += after.used.tms_utime - before.used.tms_utime;
    value.used.tms_stime += after.used.tms_stime - before.used.tms_stime;
    bytes.assign(reinterpret_cast<const char*>(&value), sizeof value);
  }
  return bytes;
}

ThreadClocks& ThreadClocksOf(Session& session, ThreadState& thread) {
  std::unique_ptr<ThreadClocks>& clocks = ClocksOf(thread).clocks;
  if (clocks == nullptr) {
    const auto* streams =
        thread.recorded == kNone ? nullptr : &session.plan().threads()[thread.recorded].clocks;
    clocks = std::make_unique<ThreadClocks>(session.Find<SessionClocks>()->process, streams);
  }
  return *clocks;
}

}  // namespace

SessionClocks::SessionClocks(const ReplayPlan& plan, ClockMode mode) {
  process.SetMode(mode);
  for (const auto& [source, first] : plan.first_readings()) {
    const ClockFamily family = FamilyOf(static_cast<format::ClockSource>(source));
    if (family == ClockFamily::kNone) continue;
    // What the clock said when recording began; the processor time used was next to nothing.
    const auto since = static_cast<int64_t>(first.time_ns - plan.begin_ns);
    const bool is_cpu = family == ClockFamily::kProcessCpu || family == ClockFamily::kThreadCpu;
    process.Start(family, is_cpu ? 0 : LiveClock(family) - (first.value - since));
  }
}

int64_t ServeClock(Session& session, ThreadState& thread, format::ClockSource source,
                   int64_t live_ns) {
  session.progress().child_signals().CountReading(thread.recorded);
  return ThreadClocksOf(session, thread).Read(source, live_ns, session.progress().Segment(thread));
}

void TakeClockBack(Session& session, ThreadState& thread, format::ClockSource source,
                   preload::UnseenReading made_for) {
  const ReplayPlan& plan = session.plan();
  const bool is_named = made_for == preload::UnseenReading::kPythonLock
                            ? plan.names_python_locks
                            : plan.names_interpreter_waits;
  if (is_named && ThreadClocksOf(session, thread).TakeBack(source))
    session.progress().child_signals().TakeReadingBack(thread.recorded);
}

int64_t DeadlineOffset(Session& session, ThreadState& thread, int clock, int64_t deadline_ns) {
  return ThreadClocksOf(session, thread).DeadlineOffset(FamilyOfId(clock), deadline_ns);
}

void ServeUsage(Session& session, ThreadState& thread, InputCall& call) {
  call.Real();
  if (call.result < 0 || session.options().clocks != ClockMode::kServed ||
      thread.recorded == kNone) {
    return;
  }
  const InputKey key{call.api, call.key};
  const ReplayPlan& plan = session.plan();
  const auto& by_key = plan.threads()[thread.recorded].by_key;
  const auto recorded = by_key.find(key);
  if (recorded == by_key.end()) return;
  const std::string live(reinterpret_cast<const char*>(call.out.data()), call.produced);
  uint32_t& next = thread.next_by_key[key];
  auto& [told, then] = ClocksOf(thread).last_usage[key];
  if (next < recorded->second.size()) {
    told = std::string(plan.Bytes(plan.inputs()[recorded->second[next++]].data));
  } else {
    told = Advanced(call.api, told, then, live);
  }
  then = live;
  if (told.size() == call.out.size()) std::memcpy(call.out.data(), told.data(), told.size());
}

}  // namespace deja::replayer
