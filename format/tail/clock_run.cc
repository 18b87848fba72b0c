#include "format/tail/clock_run.h"

#include <algorithm>
#include <cstring>

#include "format/wire/message_codec.h"

namespace deja::format {

const char* ClockSourceName(uint32_t source) {
  switch (static_cast<ClockSource>(source)) {
    case ClockSource::kNone:
      return nullptr;
    case ClockSource::kRealtime:
      return "clock_gettime(CLOCK_REALTIME)";
    case ClockSource::kMonotonic:
      return "clock_gettime(CLOCK_MONOTONIC)";
    case ClockSource::kProcessCpu:
      return "clock_gettime(CLOCK_PROCESS_CPUTIME_ID)";
    case ClockSource::kThreadCpu:
      return "clock_gettime(CLOCK_THREAD_CPUTIME_ID)";
    case ClockSource::kMonotonicRaw:
      return "clock_gettime(CLOCK_MONOTONIC_RAW)";
    case ClockSource::kRealtimeCoarse:
      return "clock_gettime(CLOCK_REALTIME_COARSE)";
    case ClockSource::kMonotonicCoarse:
      return "clock_gettime(CLOCK_MONOTONIC_COARSE)";
    case ClockSource::kBoottime:
      return "clock_gettime(CLOCK_BOOTTIME)";
    case ClockSource::kTai:
      return "clock_gettime(CLOCK_TAI)";
    case ClockSource::kGettimeofday:
      return "gettimeofday";
    case ClockSource::kTime:
      return "time";
    case ClockSource::kTimespecGet:
      return "timespec_get";
    case ClockSource::kClock:
      return "clock";
    case ClockSource::kInterpreterWait:
      return "a wait for Python's interpreter lock";
    case ClockSource::kPythonLock:
      return "a lock of Python's";
    case ClockSource::kUnseen:
      return "the reading before it was not the program's";
    case ClockSource::kLockOutcome:
    case ClockSource::kLockTurn:
      break;
  }
  return nullptr;
}

size_t EncodeClockRun(const EventHead& head, std::span<const uint8_t> sources,
                      std::span<const int64_t> values, std::byte* out) {
  std::byte packed[kMaxClockReads * 10];
  UncheckedWireWriter deltas(packed);
  int64_t last[kReadingSources] = {};
  bool mixed = false;
  for (size_t i = 0; i < values.size(); ++i) {
    const uint8_t source = sources[i];
    mixed |= source != sources[0];
    int64_t& before = last[std::min<size_t>(source, kReadingSources - 1)];
    deltas.Varint(ZigZag(
        static_cast<int64_t>(static_cast<uint64_t>(values[i]) - static_cast<uint64_t>(before))));
    before = values[i];
  }
  // Sources are below 128: one byte each.
  const size_t source_bytes = mixed ? values.size() : 1;
  const size_t body_size =
      1 + VarintSize(source_bytes) + source_bytes + 1 + VarintSize(deltas.size()) + deltas.size();
  UncheckedWireWriter writer(out);
  internal::WriteVisitor<UncheckedWireWriter> visitor{writer};
  Visit(visitor, head);
  writer.Tag(static_cast<uint32_t>(EventKind::kClockRun), WireType::kBytes);
  writer.Varint(body_size);
  writer.Tag(1, WireType::kBytes);
  writer.Varint(source_bytes);
  writer.Raw(sources.data(), source_bytes);
  writer.Tag(2, WireType::kBytes);
  writer.Varint(deltas.size());
  writer.Raw(packed, deltas.size());
  return writer.size();
}

}  // namespace deja::format
