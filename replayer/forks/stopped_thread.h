// A thread that a signal has stopped in its handler, and the same thread made once more in a copy
// of the process.
//
// All that a thread is lies in memory, but for what the kernel keeps of it. The kernel's part is
// the registers, in the signal's frame on the thread's stack, and what Note asks for. x86-64 only.
#ifndef DEJA_REPLAYER_FORKS_STOPPED_THREAD_H_
#define DEJA_REPLAYER_FORKS_STOPPED_THREAD_H_

#include <ucontext.h>

#include <cstddef>
#include <cstdint>

namespace deja::replayer {

// A word that only grows, on which stopped threads wait until it is `open`. No lock, no allocation.
void AwaitGate(const uint32_t& gate, uint32_t open);
void OpenGate(uint32_t& gate, uint32_t open);

class StoppedThread {
 public:
  // Before any thread is stopped.
  static void Prepare();
  // On the thread itself, in the handler of the signal. False: something of it cannot be had.
  bool Note(ucontext_t* frame);
  // It was in a system call, or had just left one. If it waited there, the call begins once more
  // when the handler returns, in this process and in a copy: the program sees no EINTR.
  bool StandsAtACall();
  // In the copy, on any thread. The thread's new number; negative: an errno. The thread is as it
  // was, waits for the gate, and goes on where the handler would have returned to.
  long MakeAgain(const uint32_t* gate, uint32_t open);

  int tid = 0;

 private:
  [[noreturn]] static void Begin(StoppedThread* self);

  ucontext_t* frame_ = nullptr;
  unsigned long fs_ = 0;
  unsigned long gs_ = 0;
  int* tid_address_ = nullptr;  // where the C library keeps the number
  void* robust_list_ = nullptr;
  size_t robust_size_ = 0;
  char name_[16] = {};
  unsigned char processors_[128] = {};
  long processors_size_ = 0;
  const uint32_t* gate_ = nullptr;
  uint32_t open_ = 0;
  uint32_t is_ready_ = 0;  // 1: it waits for the gate
};

}  // namespace deja::replayer

#endif  // DEJA_REPLAYER_FORKS_STOPPED_THREAD_H_
