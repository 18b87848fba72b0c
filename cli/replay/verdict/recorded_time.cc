#include "cli/replay/verdict/recorded_time.h"

namespace deja::cli {

RecordedPlace PlaceOf(const DivergenceLine& divergence) {
  return {divergence.step, divergence.comm, divergence.comm_seq.value_or(0)};
}

std::optional<uint64_t> NotLaterThan(const format::RankReader& reader, const RecordedPlace& place) {
  const bool of_operation = place.comm && place.comm_seq != 0;
  const uint64_t next_step = place.step ? *place.step + 1 : 0;
  const auto kind = of_operation ? format::EventKind::kCallEnter : format::EventKind::kStep;
  const auto cursor = reader.Events();
  while (const format::Event* event = cursor->NextOf(format::KindBit(kind))) {
    if (of_operation) {
      const auto* enter = event->As<format::CallEnter>();
      if (enter->comm == *place.comm + 1 && enter->comm_seq == place.comm_seq)
        return event->time_ns;
    } else if (event->As<format::Step>()->step >= next_step) {
      return event->time_ns;
    }
  }
  return std::nullopt;
}

}  // namespace deja::cli
