#include "cli/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <utility>

#include "cli/output.h"
#include "common/text/plain_text.h"

namespace deja::cli {
namespace {

constexpr auto kFirst = std::chrono::seconds(1);
constexpr auto kBetween = std::chrono::milliseconds(100);

std::string Amount(ProgressUnit unit, uint64_t amount) {
  return unit == ProgressUnit::kBytes ? HumanBytes(amount) : HumanCount(amount);
}

std::string RateText(ProgressUnit unit, double per_second) {
  if (unit == ProgressUnit::kBytes) return HumanBytes(static_cast<uint64_t>(per_second)) + "/s";
  return fmt::format("{:.{}f}/s", per_second, per_second < 10 ? 1 : 0);
}

const char* NameOf(ProgressUnit unit) {
  switch (unit) {
    case ProgressUnit::kRanks:
      return " ranks";
    case ProgressUnit::kFiles:
      return " files";
    case ProgressUnit::kBytes:
      break;
  }
  return "";
}

// Whole seconds: the last digits of a guess tell nothing.
std::string LeftText(double seconds) {
  const auto whole = static_cast<uint64_t>(std::llround(seconds));
  return whole < 100 ? fmt::format("{} s", whole) : HumanDuration(whole * 1'000'000'000);
}

}  // namespace

std::string ProgressText(std::string_view what, ProgressUnit unit, uint64_t done, uint64_t total,
                         uint64_t elapsed_ns) {
  done = std::min(done, total);
  const double part = static_cast<double>(done) / static_cast<double>(total);
  std::string text = fmt::format("{}: {:.0f} %, {} of {}{}", PlainText(what), part * 100,
                                 Amount(unit, done), Amount(unit, total), NameOf(unit));
  const double seconds = static_cast<double>(elapsed_ns) * 1e-9;
  if (done == 0 || seconds <= 0) return text;
  const double rate = static_cast<double>(done) / seconds;
  return text + fmt::format(", {}, {} left", RateText(unit, rate),
                            LeftText(static_cast<double>(total - done) / rate));
}

Progress::Progress(std::string what, ProgressUnit unit)
    : what_(std::move(what)),
      unit_(unit),
      on_terminal_(isatty(STDERR_FILENO) == 1),
      next_(begin_ + kFirst) {}

Progress::~Progress() {
  if (is_shown_) std::fputs("\r\033[K", stderr);
}

void Progress::Update(uint64_t done, uint64_t total) {
  if (!on_terminal_ || total == 0) return;
  const Clock::time_point now = Clock::now();
  if (now < next_) return;
  next_ = now + kBetween;
  is_shown_ = true;
  const auto elapsed = std::chrono::duration_cast<std::chrono::nanoseconds>(now - begin_).count();
  std::fputs(
      ("\r" + ProgressText(what_, unit_, done, total, static_cast<uint64_t>(elapsed)) + "\033[K")
          .c_str(),
      stderr);
  std::fflush(stderr);
}

}  // namespace deja::cli
