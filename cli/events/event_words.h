// The names that listings have for things in events: kinds, data types, clocks, hashes.
//
// Pure functions.
#ifndef DEJA_CLI_EVENTS_EVENT_WORDS_H_
#define DEJA_CLI_EVENTS_EVENT_WORDS_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "common/ids.h"
#include "format/tail/clock_run.h"
#include "format/tail/lock_reading.h"
#include "format/wire/messages.h"

namespace deja::cli {

// The name under which `deja show --kind` knows an event: "enter", "leave", "results", "input", …
const char* KindName(const format::Event& event);
const char* KindName(format::EventKind kind);
// All of them, for the help.
std::string KindNames();

// "realtime"; "clock 77" for one that this version does not know.
std::string ClockName(format::ClockSource source);
// "mutex 1a2b", by its counter / "turn 17"
std::string LockText(const format::LockReading& lock);
std::string LockResultText(const format::LockReading& lock);
// "Adam"; "optimizer 77" for one that this version does not know.
std::string OptimizerName(uint32_t optimizer);
// "RING LL128, 2 channels"
std::string ChoiceText(std::string_view algorithm, std::string_view protocol, uint32_t channels);
// The tag that a call with a configuration of its own carries for profilers; 0: none.
uint64_t ProfilerTag(const format::CallEnter& enter);
// In hexadecimal.
std::string HashText(const Hash128& hash);

// "2.23.4" for an NCCL_VERSION_CODE; "unknown" for 0.
std::string NcclVersion(uint32_t code);

}  // namespace deja::cli

#endif  // DEJA_CLI_EVENTS_EVENT_WORDS_H_
