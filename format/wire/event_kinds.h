// The kinds of events, as event_kinds.def lists them: how each is shown, and what a replay from a
// checkpoint needs of it. Constants; any thread.
#ifndef DEJA_FORMAT_WIRE_EVENT_KINDS_H_
#define DEJA_FORMAT_WIRE_EVENT_KINDS_H_

#include <array>
#include <cstdint>

#include "format/wire/messages.h"

namespace deja::format {

// What a replay that begins at a checkpoint does with events before it (event_kinds.def).
enum class EventPassing : uint8_t { kPasses, kWithCalls, kDefines };

struct EventKindRow {
  EventKind kind;
  const char* name;  // in `deja show`
  EventPassing passing;
};

inline constexpr std::array kEventKinds = {
#define DEJA_EVENT(Message, number, name, passing) \
  EventKindRow{EventKind::k##Message, name, EventPassing::passing},
#include "format/wire/event_kinds.def"
#undef DEJA_EVENT
};

// Bit n for each EventKind n with this passing.
constexpr uint64_t KindsThat(EventPassing passing) {
  uint64_t kinds = 0;
  for (const EventKindRow& row : kEventKinds)
    if (row.passing == passing) kinds |= uint64_t{1} << static_cast<uint32_t>(row.kind);
  return kinds;
}

}  // namespace deja::format

#endif  // DEJA_FORMAT_WIRE_EVENT_KINDS_H_
