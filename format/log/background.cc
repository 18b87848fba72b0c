#include "format/log/background.h"

#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>

namespace deja::format {
namespace {

// linux/ioprio.h, which older kernels' headers do not have.
constexpr int kIoPrioWhoProcess = 1;
constexpr int kIoPrioIdle = 3 << 13;

bool ParseNumber(std::string_view text, int& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() && number >= 0 &&
         number < CPU_SETSIZE;
}

}  // namespace

std::vector<int> ParseCpuList(std::string_view text) {
  std::vector<int> cpus;
  while (!text.empty()) {
    const size_t comma = std::min(text.find(','), text.size());
    const std::string_view range = text.substr(0, comma);
    text.remove_prefix(std::min(comma + 1, text.size()));
    const size_t dash = std::min(range.find('-'), range.size());
    int first = 0;
    int last = 0;
    if (!ParseNumber(range.substr(0, dash), first)) return {};
    last = first;
    if (dash != range.size() && !ParseNumber(range.substr(dash + 1), last)) return {};
    if (last < first) return {};
    for (int cpu = first; cpu <= last; ++cpu) cpus.push_back(cpu);
  }
  return cpus;
}

void RunInBackground(const BackgroundOptions& options) {
  // Does not preempt the program's threads when it wakes up.
  const sched_param parameters{};
  (void)sched_setscheduler(0, SCHED_BATCH, &parameters);
  const auto self = static_cast<id_t>(syscall(SYS_gettid));
  if (options.nice > 0)
    (void)setpriority(PRIO_PROCESS, self, getpriority(PRIO_PROCESS, self) + options.nice);
  if (options.idle_io) (void)syscall(SYS_ioprio_set, kIoPrioWhoProcess, 0, kIoPrioIdle);
  const std::vector<int> cpus = ParseCpuList(options.cpus);
  if (cpus.empty()) return;
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int cpu : cpus) CPU_SET(cpu, &set);
  (void)sched_setaffinity(0, sizeof set, &set);
}

}  // namespace deja::format
