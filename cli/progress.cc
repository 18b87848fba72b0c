#include "cli/progress.h"

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "cli/output.h"
#include "cli/status_line.h"
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
  const double seconds = static_cast<double>(elapsed_ns) * 1e-9;
  if (total == 0) return fmt::format("{}: {:.0f} s", PlainText(what), seconds);
  done = std::min(done, total);
  const double part = static_cast<double>(done) / static_cast<double>(total);
  std::string text = fmt::format("{}: {:.0f} %, {} of {}{}", PlainText(what), part * 100,
                                 Amount(unit, done), Amount(unit, total), NameOf(unit));
  if (done == 0 || seconds <= 0) return text;
  const double rate = static_cast<double>(done) / seconds;
  return text + fmt::format(", {}, {} left", RateText(unit, rate),
                            LeftText(static_cast<double>(total - done) / rate));
}

Progress::Progress(std::string what, ProgressUnit unit) : what_(std::move(what)), unit_(unit) {
  if (!HasStatusLine()) return;
  // Signals are for the threads that handle them already.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  drawer_ = std::thread([this] { Draw(); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

Progress::~Progress() {
  if (!drawer_.joinable()) return;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    has_ended_ = true;
  }
  ended_.notify_one();
  drawer_.join();
  HideStatusLine();
}

void Progress::Update(uint64_t done, uint64_t total) {
  const std::lock_guard<std::mutex> lock(mutex_);
  done_ = done;
  total_ = total;
}

void Progress::Begin(std::string what, ProgressUnit unit) {
  const std::lock_guard<std::mutex> lock(mutex_);
  what_ = std::move(what);
  unit_ = unit;
  done_ = total_ = 0;
  begin_ = Clock::now();
}

void Progress::Draw() {
  std::unique_lock<std::mutex> lock(mutex_);
  for (auto next = begin_ + kFirst;; next = Clock::now() + kBetween) {
    if (ended_.wait_until(lock, next, [this] { return has_ended_; })) return;
    const auto elapsed = std::chrono::nanoseconds(Clock::now() - begin_).count();
    ShowStatusLine(ProgressText(what_, unit_, done_, total_, static_cast<uint64_t>(elapsed)));
  }
}

}  // namespace deja::cli
