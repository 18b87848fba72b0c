#include "loopback/algorithms/p2p.h"

#include <algorithm>

#include "loopback/ranks/memory.h"

namespace deja::loopback {
namespace {

// The peer can start on the first half of a ring while we fill the second.
size_t Portion(const SharedArea& area) {
  return area.channel_bytes() / 4;
}

// What both sides share: their turn on the channel to `peer`, and how far they have come.
class Transfer : public Op {
 public:
  Transfer(ncclComm* comm, const char* name, Turnstile& line, size_t bytes, int peer)
      : Op(comm, name), line_(line), bytes_(bytes), peer_(peer), ticket_(line.Take()) {}

  Progress Step() override {
    if (!line_.IsTurnOf(ticket_)) return Progress::kBlocked;
    bool moved = false;
    while (done_ < bytes_) {
      size_t length = Move(std::min(bytes_ - done_, Portion(comm()->area)));
      if (length == 0) break;
      comm()->area.Ring(peer_);
      done_ += length;
      moved = true;
    }
    if (done_ == bytes_) return Progress::kDone;
    return moved ? Progress::kMoved : Progress::kBlocked;
  }
  void Close() override { line_.Leave(); }
  bool Awaits(int peer) const override { return peer == peer_; }

 protected:
  // Moves up to `most` bytes between the buffer and the ring; says how many.
  virtual size_t Move(size_t most) = 0;

  [[nodiscard]] int peer() const { return peer_; }
  [[nodiscard]] size_t done() const { return done_; }

 private:
  Turnstile& line_;
  const size_t bytes_;
  const int peer_;
  const uint64_t ticket_;
  size_t done_ = 0;
};

class Send : public Transfer {
 public:
  Send(ncclComm* comm, const void* buffer, size_t bytes, int peer)
      : Transfer(comm, "ncclSend", comm->sends[static_cast<size_t>(peer)], bytes, peer),
        buffer_(static_cast<const char*>(buffer)) {}

 private:
  size_t Move(size_t most) override {
    const SharedArea& area = comm()->area;
    Channel& channel = area.channel(comm()->rank, peer());
    const size_t size = area.channel_bytes();
    const uint64_t at = channel.written.load(std::memory_order_relaxed);
    const size_t room = size - (at - channel.read.load(std::memory_order_seq_cst));
    const size_t length = std::min({most, room, size - at % size});
    if (length == 0) return 0;
    CopyIn(area.ChannelBytes(comm()->rank, peer()) + at % size, buffer_ + done(), length);
    channel.written.store(at + length, std::memory_order_seq_cst);
    return length;
  }

  const char* buffer_;
};

class Receive : public Transfer {
 public:
  Receive(ncclComm* comm, void* buffer, size_t bytes, int peer)
      : Transfer(comm, "ncclRecv", comm->receives[static_cast<size_t>(peer)], bytes, peer),
        buffer_(static_cast<char*>(buffer)) {}

 private:
  size_t Move(size_t most) override {
    const SharedArea& area = comm()->area;
    Channel& channel = area.channel(peer(), comm()->rank);
    const size_t size = area.channel_bytes();
    const uint64_t at = channel.read.load(std::memory_order_relaxed);
    const size_t there = channel.written.load(std::memory_order_seq_cst) - at;
    const size_t length = std::min({most, there, size - at % size});
    if (length == 0) return 0;
    CopyOut(buffer_ + done(), area.ChannelBytes(peer(), comm()->rank) + at % size, length);
    channel.read.store(at + length, std::memory_order_seq_cst);
    return length;
  }

  char* buffer_;
};

}  // namespace

std::unique_ptr<Op> MakeSend(ncclComm* comm, const void* buffer, size_t bytes, int peer) {
  return std::make_unique<Send>(comm, buffer, bytes, peer);
}

std::unique_ptr<Op> MakeReceive(ncclComm* comm, void* buffer, size_t bytes, int peer) {
  return std::make_unique<Receive>(comm, buffer, bytes, peer);
}

}  // namespace deja::loopback
