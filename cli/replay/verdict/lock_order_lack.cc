#include "cli/replay/verdict/lock_order_lack.h"

#include <algorithm>
#include <cstddef>

#include "format/tail/lock_reading.h"

namespace deja::cli {

using format::EventKind;
using format::KindBit;

namespace {
// The names of the program's threads begin with that of its first one, of which they come.
constexpr char kMainThread = '0';
}  // namespace

bool LacksLockOrder(const format::RankReader& reader) {
  size_t threads = 0;
  const auto cursor = reader.Events();
  while (const format::Event* event =
             cursor->NextOf(KindBit(EventKind::kThreadStart) | KindBit(EventKind::kClockRun))) {
    if (const auto* start = event->As<format::ThreadStart>(); start != nullptr) {
      if (start->name.starts_with(kMainThread)) ++threads;
      continue;
    }
    const auto& sources = event->As<format::ClockRun>()->sources;
    const auto is_lock = [](uint32_t source) {
      return format::IsLockReading(static_cast<format::ClockSource>(source));
    };
    if (std::any_of(sources.begin(), sources.end(), is_lock)) return false;
  }
  return threads > 1;
}

}  // namespace deja::cli
