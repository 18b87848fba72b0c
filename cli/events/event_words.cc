#include "cli/events/event_words.h"

#include <fmt/format.h>

#include <array>

#include "digest/digest.h"

namespace deja::cli {

using format::Event;

namespace {

struct KindRow {
  format::EventKind kind;
  const char* name;
};

constexpr std::array kKinds = {
    KindRow{format::EventKind::kCallEnter, "enter"},
    KindRow{format::EventKind::kCallLeave, "leave"},
    KindRow{format::EventKind::kCallResults, "results"},
    KindRow{format::EventKind::kAlgorithmChosen, "algorithm"},
    KindRow{format::EventKind::kInput, "input"},
    KindRow{format::EventKind::kClockRun, "clocks"},
    KindRow{format::EventKind::kStep, "step"},
    KindRow{format::EventKind::kSnapshot, "snapshot"},
    KindRow{format::EventKind::kCheckpoint, "checkpoint"},
    KindRow{format::EventKind::kOptimizerUpdate, "update"},
    KindRow{format::EventKind::kNote, "note"},
    KindRow{format::EventKind::kThreadStart, "thread-start"},
    KindRow{format::EventKind::kThreadEnd, "thread-end"},
    KindRow{format::EventKind::kCommCreated, "comm"},
    KindRow{format::EventKind::kModuleLoaded, "module"},
    KindRow{format::EventKind::kStackDefined, "stack"},
    KindRow{format::EventKind::kCrash, "crash"},
    KindRow{format::EventKind::kProcessExit, "exit"},
    KindRow{format::EventKind::kDegraded, "degraded"},
    KindRow{format::EventKind::kAsyncError, "async-error"},
    KindRow{format::EventKind::kHandleDefined, "handle"},
    KindRow{format::EventKind::kInputFile, "file"},
    KindRow{format::EventKind::kFileRead, "file-read"},
    KindRow{format::EventKind::kConnectionOpened, "connection"},
    KindRow{format::EventKind::kTransfer, "transfer"},
    KindRow{format::EventKind::kChild, "child"},
    KindRow{format::EventKind::kWindowChange, "window"},
};

format::EventKind KindOf(const Event& event) {
  return std::visit([](const auto& body) { return format::kKindOf<std::decay_t<decltype(body)>>; },
                    event.body);
}

}  // namespace

const char* KindName(const Event& event) {
  format::EventKind kind = KindOf(event);
  for (const KindRow& row : kKinds)
    if (row.kind == kind) return row.name;
  return "unknown";
}

std::string KindNames() {
  std::string names;
  for (const KindRow& row : kKinds) names += (names.empty() ? "" : ", ") + std::string(row.name);
  return names;
}

std::string ClockName(format::ClockSource source) {
  const char* name = format::ClockSourceName(static_cast<uint32_t>(source));
  return name == nullptr ? fmt::format("clock {}", static_cast<uint32_t>(source)) : name;
}

std::string LockText(const format::LockReading& lock) {
  return fmt::format("{} {:04x}", format::LockUseName(lock.use), lock.counter);
}

std::string LockResultText(const format::LockReading& lock) {
  return lock.is_turn ? fmt::format("turn {}", lock.turn) : fmt::format("outcome {}", lock.code);
}

std::string OptimizerName(uint32_t optimizer) {
  constexpr std::array kNames = {"SGD", "Adam", "AdamW"};
  if (optimizer == 0 || optimizer > kNames.size()) return fmt::format("optimizer {}", optimizer);
  return kNames[optimizer - 1];
}

std::string ChoiceText(std::string_view algorithm, std::string_view protocol, uint32_t channels) {
  std::string text = fmt::format("{} {}", algorithm, protocol);
  if (channels != 0) text += fmt::format(", {} channel{}", channels, channels == 1 ? "" : "s");
  return text;
}

std::string HashText(const Hash128& hash) {
  std::string text;
  for (uint8_t byte : hash.bytes) text += fmt::format("{:02x}", byte);
  return text;
}

std::string NcclVersion(uint32_t code) {
  if (code == 0) return "unknown";
  // NCCL_VERSION_CODE has two digits a part since 2.9.
  return code < 10000 ? fmt::format("{}.{}.{}", code / 1000, code / 100 % 10, code % 100)
                      : fmt::format("{}.{}.{}", code / 10000, code / 100 % 100, code % 100);
}

}  // namespace deja::cli
