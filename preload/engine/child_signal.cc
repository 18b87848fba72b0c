#include "preload/engine/child_signal.h"

#include <csignal>

#include "preload/process/guard.h"

namespace deja::preload {

constinit std::atomic<void (*)(int)> g_child_signal_handler{nullptr};
constinit thread_local ChildSignal t_child_signal __attribute__((tls_model("initial-exec")));
constinit std::atomic<bool> g_counts_file_calls{false};

void RunChildSignalHandler() {
  auto* handler = g_child_signal_handler.load(std::memory_order_acquire);
  if (handler == nullptr) return;
  const int before = std::exchange(t_child_signal.handler_depth, static_cast<int>(t_guard_depth));
  handler(SIGCHLD);
  t_child_signal.handler_depth = before;
}

}  // namespace deja::preload
