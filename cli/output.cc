#include "cli/output.h"

#include <algorithm>
#include <array>
#include <cstdio>

#include "cli/exit_codes.h"
#include "cli/status_line.h"
#include "common/text/plain_text.h"

namespace deja::cli {

namespace {

void Put(std::string_view line, std::FILE* stream) {
  const NoStatusLine hidden;
  std::fwrite(line.data(), 1, line.size(), stream);
  std::fputc('\n', stream);
}

}  // namespace

void PrintLine(std::string_view line) {
  IsPlainText(line) ? Put(line, stdout) : Put(PlainText(line), stdout);
}

void PrintLines(std::string_view text) {
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    PrintLine(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

void PrintJson(const nlohmann::json& value, int indent) {
  Put(PlainJson(value.dump(indent, ' ', false, nlohmann::json::error_handler_t::replace)), stdout);
}

void Diagnose(std::string_view message) {
  const NoStatusLine hidden;
  std::fflush(stdout);
  std::string line = fmt::format("deja: {}\n", PlainText(message));
  std::fwrite(line.data(), 1, line.size(), stderr);
}

void Prompt(std::string_view question) {
  const NoStatusLine hidden;
  const std::string text = fmt::format("deja: {}", PlainText(question));
  std::fwrite(text.data(), 1, text.size(), stderr);
}

int FailWith(const Error& error) {
  const bool damaged = error.code == ErrorCode::kCorrupt;
  Diagnose(error.message + (damaged ? "; it is DAMAGED: `deja verify` lists all damage" : ""));
  return damaged ? kExitDataLoss : kExitFailure;
}

std::string HumanBytes(uint64_t bytes) {
  static constexpr std::array<const char*, 6> kUnits = {"B", "kB", "MB", "GB", "TB", "PB"};
  double value = static_cast<double>(bytes);
  size_t unit = 0;
  while (value >= 999.5 && unit + 1 < kUnits.size()) {
    value /= 1000;
    ++unit;
  }
  return unit == 0 ? fmt::format("{} B", bytes)
                   : fmt::format("{:.{}f} {}", value,
                                 value < 9.995   ? 2
                                 : value < 99.95 ? 1
                                                 : 0,
                                 kUnits[unit]);
}

std::string HumanCount(uint64_t count) {
  std::string digits = std::to_string(count);
  for (int at = static_cast<int>(digits.size()) - 3; at > 0; at -= 3)
    digits.insert(static_cast<size_t>(at), 1, ',');
  return digits;
}

std::string HumanDuration(uint64_t ns) {
  double seconds = static_cast<double>(ns) * 1e-9;
  if (seconds >= 100) {
    auto whole = static_cast<uint64_t>(seconds);
    if (whole >= 3600)
      return fmt::format("{}h {:02}m {:02}s", whole / 3600, whole / 60 % 60, whole % 60);
    return fmt::format("{}m {:02}s", whole / 60, whole % 60);
  }
  if (seconds >= 0.1) return fmt::format("{:.2f} s", seconds);
  if (seconds >= 1e-4) return fmt::format("{:.2f} ms", seconds * 1e3);
  return fmt::format("{:.1f} us", seconds * 1e6);
}

}  // namespace deja::cli
