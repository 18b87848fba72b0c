// Clocks are inputs: wall clocks seed generators, the others measure what ends up in results.
//
// Each hook reads the real clock into the program's memory first, and then asks the engine for the
// program's answer. Nothing is recorded of a call that fails, nor of clocks that belong to another
// thread, process or device (ids that are no small number).
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/times.h>
#include <time.h>

#include <cstdint>
#include <new>

#include "preload/calls/clock_calls.h"
#include "preload/calls/input_calls.h"
#include "preload/hooks/export.h"
#include "preload/hooks/input.h"
#include "preload/symbols/python_locks.h"
#include "preload/symbols/real_symbols.h"

namespace deja::preload {
namespace {

using format::ClockSource;

constinit RealFn<int (*)(clockid_t, timespec*)> real_clock_gettime{"clock_gettime"};
constinit RealFn<int (*)(timeval*, void*)> real_gettimeofday{"gettimeofday"};
constinit RealFn<time_t (*)(time_t*)> real_time{"time"};
constinit RealFn<int (*)(timespec*, int)> real_timespec_get{"timespec_get"};
constinit RealFn<clock_t (*)()> real_clock{"clock"};
constinit RealFn<clock_t (*)(tms*)> real_times{"times"};
constinit RealFn<int (*)(int, rusage*)> real_getrusage{"getrusage"};

constexpr int64_t kSecond = 1000000000;
constexpr int64_t kClockTick = kSecond / CLOCKS_PER_SEC;

constexpr uint32_t kSourcesOfIds =
    1u << CLOCK_REALTIME | 1u << CLOCK_MONOTONIC | 1u << CLOCK_PROCESS_CPUTIME_ID |
    1u << CLOCK_THREAD_CPUTIME_ID | 1u << CLOCK_MONOTONIC_RAW | 1u << CLOCK_REALTIME_COARSE |
    1u << CLOCK_MONOTONIC_COARSE | 1u << CLOCK_BOOTTIME | 1u << CLOCK_TAI;

bool IsSource(clockid_t clock) {
  return static_cast<uint32_t>(clock) < 32 && (kSourcesOfIds >> clock & 1) != 0;
}

// The program's answer for a clock that says `ns`.
int64_t Tell(ClockSource source, int64_t ns) {
  if (InsideDeja()) return ns;
  Engine* engine = GetEngine();
  if (engine == nullptr) return ns;
  Guard guard;
  return engine->clocks->OnClock(source, ns);
}

void Tell(ClockSource source, timespec* time) {
  const int64_t live = time->tv_sec * kSecond + time->tv_nsec;
  const int64_t told = Tell(source, live);
  if (told == live) return;
  time->tv_sec = told / kSecond;
  time->tv_nsec = told % kSecond;
}

bool AreToldToPythonLocks() {
  Engine* engine = EngineForHook();
  const Guard guard;
  return engine != nullptr && engine->clocks->TellsPythonLocks();
}

}  // namespace
}  // namespace deja::preload

using namespace deja::preload;  // NOLINT: the hooks below are this file's only names

DEJA_EXPORT int clock_gettime(clockid_t clock, timespec* out) {
  const int result = real_clock_gettime(clock, out);
  const bool is_live = IsRawReader(__builtin_return_address(0)) && !AreToldToPythonLocks();
  if (result == 0 && out != nullptr && IsSource(clock) && !is_live)
    Tell(static_cast<ClockSource>(clock + 1), out);
  // The engine may have made some of its own meanwhile.
  t_reading_is_live = is_live;
  t_reading_caller = reinterpret_cast<uintptr_t>(__builtin_return_address(0));
  t_reading_frame = reinterpret_cast<uintptr_t>(__builtin_dwarf_cfa());
  return result;
}

// The time zone of gettimeofday has not been filled in for decades.
DEJA_EXPORT int gettimeofday(timeval* __restrict out, void* __restrict zone) {
  const int result = real_gettimeofday(out, zone);
  if (result != 0 || out == nullptr) return result;
  const int64_t live = out->tv_sec * kSecond + out->tv_usec * 1000;
  const int64_t told = Tell(ClockSource::kGettimeofday, live);
  if (told != live) *out = {told / kSecond, told % kSecond / 1000};
  return result;
}

DEJA_EXPORT time_t time(time_t* out) {
  const time_t live = real_time(nullptr);
  const time_t told = Tell(ClockSource::kTime, live * kSecond) / kSecond;
  if (out != nullptr) *out = told;
  return told;
}

DEJA_EXPORT int timespec_get(timespec* out, int base) {
  const int result = real_timespec_get(out, base);
  if (result == TIME_UTC && out != nullptr) Tell(ClockSource::kTimespecGet, out);
  return result;
}

DEJA_EXPORT clock_t clock() noexcept {
  const clock_t live = real_clock();
  return live < 0 ? live : Tell(ClockSource::kClock, live * kClockTick) / kClockTick;
}

DEJA_EXPORT clock_t times(tms* out) noexcept {
  Engine* engine = EngineForHook();
  if (engine == nullptr) return real_times(out);
  // Wholly in bytes, the returned ticks too: they may be negative without an error.
  struct {
    clock_t ticks;
    tms used;
  } value{};
  TakeInput(*engine, deja::api::LibcApi::ktimes, 0, BytesOf(&value), [&](InputCall& call) {
    decltype(value) live{};
    live.ticks = real_times(&live.used);
    call.result = 0;
    __builtin_memcpy(call.out.data(), &live, sizeof live);
    call.produced = sizeof live;
  });
  if (out != nullptr) *out = value.used;
  return value.ticks;
}

DEJA_EXPORT int getrusage(__rusage_who_t who, rusage* out) noexcept {
  Engine* engine = out != nullptr ? EngineForHook() : nullptr;
  if (engine == nullptr) return real_getrusage(who, out);
  return static_cast<int>(TakeInput(*engine, deja::api::LibcApi::kgetrusage,
                                    static_cast<uint64_t>(who), BytesOf(out), [&](InputCall& call) {
                                      rusage live{};
                                      call.result = real_getrusage(who, &live);
                                      if (call.result < 0) return;
                                      __builtin_memcpy(call.out.data(), &live, sizeof live);
                                      call.produced = sizeof live;
                                    }));
}
