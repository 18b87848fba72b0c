#include "cli/interruption.h"

#include <atomic>
#include <chrono>

namespace deja::cli {
namespace {

constexpr int kNoted[] = {SIGINT, SIGQUIT, SIGTERM, SIGHUP};
constexpr auto kMoment = std::chrono::seconds(5);

std::atomic<int> g_first_signal{0};
std::atomic<int> g_end_signal{0};  // SIGTERM or SIGHUP
std::atomic<int> g_times{0};

void NoteSignal(int signal) {
  int none = 0;
  g_first_signal.compare_exchange_strong(none, signal);
  none = 0;
  if (signal == SIGTERM || signal == SIGHUP) g_end_signal.compare_exchange_strong(none, signal);
  g_times.fetch_add(1);
}

}  // namespace

Interruption::Interruption() {
  for (const int signal : kNoted) {
    struct sigaction action {};
    if (sigaction(signal, nullptr, &action) != 0 || action.sa_handler == SIG_IGN) continue;
    before_[signal] = action;
    action = {};
    action.sa_handler = NoteSignal;
    sigaction(signal, &action, nullptr);
  }
}

Interruption::~Interruption() {
  for (const auto& [signal, action] : before_) sigaction(signal, &action, nullptr);
}

int Interruption::Signal() {
  return g_first_signal.load();
}

bool Interruption::IsOver() {
  using Clock = std::chrono::steady_clock;
  static Clock::time_point seen;
  if (Signal() == 0) return false;
  if (EndOfSession() != 0 || g_times.load() > 1) return true;
  if (seen == Clock::time_point()) seen = Clock::now();
  return Clock::now() - seen > kMoment;
}

int Interruption::EndOfSession() {
  return g_end_signal.load();
}

}  // namespace deja::cli
