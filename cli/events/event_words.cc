#include "cli/events/event_words.h"

#include <fmt/format.h>

#include <array>
#include <cstring>

#include "api/find_api.h"
#include "api/nccl_table.h"
#include "digest/digest.h"
#include "format/wire/event_kinds.h"

namespace deja::cli {

using format::Event;

namespace {

format::EventKind KindOf(const Event& event) {
  return std::visit([](const auto& body) { return format::kKindOf<std::decay_t<decltype(body)>>; },
                    event.body);
}

}  // namespace

const char* KindName(format::EventKind kind) {
  for (const format::EventKindRow& row : format::kEventKinds)
    if (row.kind == kind) return row.name;
  return "unknown";
}

const char* KindName(const Event& event) {
  return KindName(KindOf(event));
}

std::string KindNames() {
  std::string names;
  for (const format::EventKindRow& row : format::kEventKinds)
    names += (names.empty() ? "" : ", ") + std::string(row.name);
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

uint64_t ProfilerTag(const format::CallEnter& enter) {
  const api::ApiInfo* info = api::FindApi(enter.api);
  uint64_t tag = 0;
  if (info == nullptr || info->Find(api::Role::kCollConfig) < 0 ||
      enter.blob.size() < api::kProfilerTagOffset + sizeof tag)
    return 0;
  std::memcpy(&tag, enter.blob.data() + api::kProfilerTagOffset, sizeof tag);
  return tag;
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
