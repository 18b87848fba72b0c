#include "cli/fence/fence_keeper.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <utility>

#include "cli/fence/fence_answers.h"
#include "common/os/passed_descriptor.h"

namespace deja::cli {

FenceKeeper::FenceKeeper() = default;

FenceKeeper::~FenceKeeper() {
  if (thread_.joinable()) {
    const uint64_t one = 1;
    [[maybe_unused]] const ssize_t ignored = write(stop_, &one, sizeof one);
    thread_.join();
  }
  for (const int fd : {sockets_[0], sockets_[1], stop_})
    if (fd >= 0) close(fd);
}

Status FenceKeeper::Start(std::vector<std::string> own) {
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets_) != 0)
    return FailErrno("making the fence of the replay", errno);
  stop_ = eventfd(0, EFD_CLOEXEC);
  if (stop_ < 0) return FailErrno("making the fence of the replay", errno);
  answers_ = std::make_unique<FenceAnswers>(std::move(own));
  // Signals are the main thread's.
  sigset_t all;
  sigset_t old;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &old);
  thread_ = std::thread([this] { Run(); });
  pthread_sigmask(SIG_SETMASK, &old, nullptr);
  return {};
}

void FenceKeeper::TakeListener(std::vector<int>& listeners) const {
  std::byte message[1];
  int listener = -1;
  if (ReceiveWithDescriptor(sockets_[0], message, 0, &listener) > 0 && listener >= 0)
    listeners.push_back(listener);
}

void FenceKeeper::Run() {
  std::vector<int> listeners;
  for (;;) {
    std::vector<pollfd> waits = {{stop_, POLLIN, 0}, {sockets_[0], POLLIN, 0}};
    for (const int listener : listeners) waits.push_back({listener, POLLIN, 0});
    if (poll(waits.data(), waits.size(), -1) < 0 && errno != EINTR) break;
    if (waits[0].revents != 0) break;
    for (size_t i = 2; i < waits.size(); ++i) {
      if ((waits[i].revents & POLLIN) != 0) answers_->Answer(waits[i].fd);
      if ((waits[i].revents & (POLLHUP | POLLERR)) == 0) continue;
      std::erase(listeners, waits[i].fd);  // all that it was for have ended
      close(waits[i].fd);
    }
    if (waits[1].revents != 0) TakeListener(listeners);
  }
  for (const int listener : listeners) close(listener);
}

}  // namespace deja::cli
