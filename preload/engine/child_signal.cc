#include "preload/engine/child_signal.h"

#include <csignal>

namespace deja::preload {

constinit std::atomic<void (*)(int)> g_child_signal_handler{nullptr};
constinit thread_local ChildSignal t_child_signal __attribute__((tls_model("initial-exec")));
constinit std::atomic<bool> g_counts_file_calls{false};

void RunChildSignalHandler() {
  auto* handler = g_child_signal_handler.load(std::memory_order_acquire);
  if (handler == nullptr) return;
  const bool was_handled = std::exchange(t_child_signal.is_handled, true);
  handler(SIGCHLD);
  t_child_signal.is_handled = was_handled;
}

}  // namespace deja::preload
