#include "replayer/process/process_status.h"

#include <fcntl.h>
#include <unistd.h>

#include <charconv>
#include <csignal>
#include <cstdint>
#include <cstdio>

#include "preload/process/signal_look.h"

namespace deja::replayer {

ProcessStatus::ProcessStatus(int pid) {
  char path[64];
  snprintf(path, sizeof path, "/proc/%d/task/%d/status", pid, pid);
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return;
  const ssize_t n = read(fd, text_, sizeof text_);
  close(fd);
  if (n > 0) all_ = {text_, static_cast<size_t>(n)};
}

std::string_view ProcessStatus::Field(std::string_view name) const {
  for (std::string_view left = all_; !left.empty();) {
    const std::string_view line = left.substr(0, left.find('\n'));
    left.remove_prefix(line.size() == left.size() ? line.size() : line.size() + 1);
    if (!line.starts_with(name) || line.substr(name.size(), 1) != ":") continue;
    const size_t begin = line.find_first_not_of(" \t", name.size() + 1);
    return begin == std::string_view::npos ? std::string_view() : line.substr(begin);
  }
  return {};
}

SignalEffect EffectOf(int signal, int pid) {
  if (signal == SIGKILL) return SignalEffect::kEnds;
  const ProcessStatus status(pid);
  const auto has = [&](std::string_view field) {
    const std::string_view digits = status.Field(field);
    uint64_t signals = 0;
    std::from_chars(digits.data(), digits.data() + digits.size(), signals, 16);
    return (signals >> (signal - 1) & 1) != 0;
  };
  if (!preload::EndsProcesses(signal) || has("SigIgn") || has("SigCgt"))
    return SignalEffect::kHandled;
  return has("SigBlk") ? SignalEffect::kPends : SignalEffect::kEnds;
}

}  // namespace deja::replayer
