// Threads of Deja's own in a replayed program. They take none of its signals. A search for a
// standstill (cli/replay/watch/standstill.h) recognises them by their name and passes over them.
//
// Any thread.
#ifndef DEJA_REPLAYER_PROCESS_OWN_THREAD_H_
#define DEJA_REPLAYER_PROCESS_OWN_THREAD_H_

#include <pthread.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <csignal>
#include <thread>
#include <utility>

#include "common/runtime/own_thread_name.h"
#include "preload/process/guard.h"

namespace deja::replayer {

// Runs `run()` in a thread that ends by itself, or never.
template <typename Run>
void StartOwnThread(Run run) {
  const preload::Guard guard;
  sigset_t all;
  sigset_t old;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &old);
  std::thread([run = std::move(run)] {
    syscall(SYS_prctl, PR_SET_NAME, kOwnThreadName);
    run();
  }).detach();
  pthread_sigmask(SIG_SETMASK, &old, nullptr);
}

}  // namespace deja::replayer

#endif  // DEJA_REPLAYER_PROCESS_OWN_THREAD_H_
