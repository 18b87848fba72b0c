// Descriptors by which only processes of the rank speak to each other: pipes, FIFOs and socketpairs
// of the program's own, and eventfds. Those of processes that it made are like them
// (own_processes.h). In a replay all their ends run.
//
// Any thread; no allocation; errno is kept.
#ifndef DEJA_PRELOAD_HOOKS_DESCRIPTORS_OWN_PIPES_H_
#define DEJA_PRELOAD_HOOKS_DESCRIPTORS_OWN_PIPES_H_

#include <atomic>
#include <cstdint>

#include "preload/engine/fd_table.h"
#include "preload/meet/pipe_table.h"

namespace deja::preload {

// So it is, and Deja does not answer for it. Up to one system call.
bool IsOwnPipe(int fd);

// The object for a descriptor of a pipe, or of one end of a socketpair, where the engine has a
// table of them (Engine::Pipes). Inputs of the program are the order of several writers, what each
// of several readers gets, and when a read without waiting finds nothing.
//
// From a pool, which it goes back to when its last descriptor in this process is closed.
class OwnPipe final : public FdObject {
 public:
  constexpr OwnPipe() : FdObject(Kind::kPipe) {}

  // Where this end reads from, and writes to; null: the table has no entry, or not any more.
  [[nodiscard]] PipeSlot* in() const { return Valid(in_, in_inode_); }
  [[nodiscard]] PipeSlot* out() const { return Valid(out_, out_inode_); }
  // Bytes that have been read here by this process and those that it was forked from.
  std::atomic<uint64_t> taken{0};

  void OnRead(Transfer& transfer) override;
  void OnWrite(Transfer& transfer) override;
  void OnUnused(int fd) override;

  // The program has made these / the two ends of a socketpair.
  static void Made(const int (&ends)[2], bool is_pair);
  // A descriptor that came from another process, or another image of this one.
  static void Adopt(int fd);
  // The same for who is about to be the engine. Within the guard.
  static void Adopt(PipeTable& table, int fd);
  // What a FIFO leads to that the program has opened, whose pipe is called `key`. Within the guard.
  static FdObject* Named(PipeTable& table, int fd, uint64_t key);

 private:
  static OwnPipe* Take(PipeSlot* in, PipeSlot* out);
  static PipeSlot* Valid(PipeSlot* slot, uint64_t inode) {
    return slot != nullptr && slot->inode.load(std::memory_order_relaxed) == inode ? slot : nullptr;
  }

  PipeSlot* in_ = nullptr;
  PipeSlot* out_ = nullptr;
  uint64_t in_inode_ = 0;
  uint64_t out_inode_ = 0;
  OwnPipe* next_free_ = nullptr;
};

}  // namespace deja::preload

#endif  // DEJA_PRELOAD_HOOKS_DESCRIPTORS_OWN_PIPES_H_
