#include "loopback/algorithms/collectives.h"

#include <algorithm>

#include "loopback/algorithms/agreement.h"
#include "loopback/algorithms/ring.h"
#include "loopback/ranks/board.h"
#include "loopback/ranks/last_error.h"
#include "loopback/ranks/memory.h"

namespace deja::loopback {
namespace {

// Up to here an all-reduce is done in one stage: every rank folds everything. More to compute, but
// half as much waiting.
constexpr size_t kOneStageBytes = size_t{64} << 10;

size_t DivideUp(size_t a, size_t b) {
  return (a + b - 1) / b;
}

// What all collectives share: their turn, and the boards.
class Collective : public Op {
 public:
  Collective(ncclComm* comm, const CollectiveCall& call)
      : Op(comm, call.name),
        call_(call),
        element_(ElementSize(call.reduction.dtype)),
        ticket_(comm->collectives.Take()),
        agreement_(comm, call),
        input_(comm, kInputBoard),
        operands_(static_cast<size_t>(comm->nranks)) {}

  Progress Step() final {
    if (!open_) {
      if (!comm()->collectives.IsTurnOf(ticket_)) return Progress::kBlocked;
      open_ = true;
      agreement_.Announce(ticket_);
      Open();
    }
    switch (agreement_.Look()) {
      case Agreement::State::kReached:
        return Run();
      case Agreement::State::kBroken:
        set_result(Report(ncclInvalidUsage,
                          "%s: rank %d calls another collective, or the same one with other "
                          "arguments (DEJA_LOOPBACK_STRICT is set)",
                          call_.name, agreement_.unlike()));
        return Progress::kDone;
      default:
        return Progress::kBlocked;
    }
  }
  void Close() final { comm()->collectives.Leave(); }
  bool Awaits(int peer) const final { return !open_ || agreement_.Awaits(peer) || Needs(peer); }

 protected:
  virtual void Open() = 0;
  virtual Progress Run() = 0;
  [[nodiscard]] virtual bool Needs(int peer) const = 0;

  [[nodiscard]] int rank() const { return comm()->rank; }
  [[nodiscard]] int nranks() const { return comm()->nranks; }
  [[nodiscard]] const char* SendAt(size_t element) const {
    return static_cast<const char*>(call_.send) + element * element_;
  }
  [[nodiscard]] char* ReceiveAt(size_t element) const {
    return static_cast<char*>(call_.receive) + element * element_;
  }
  // Puts `count` of our elements where the others can read them, ready for the fold.
  void PutIn(char* slot, const void* from, size_t count) const {
    if (call_.reduction.scaled) {
      Prepare(call_.reduction, slot, Readable(from), count);
    } else {
      CopyIn(slot, from, count * element_);
    }
  }
  // Folds what ends at `last`: our own operand is at `own` in our buffer, that of another rank at
  // `offset` bytes in its slot.
  void FoldSlots(int last, uint64_t round, size_t offset, const void* own, void* dst,
                 size_t count) {
    int own_index = -1;
    for (int k = 0; k < nranks(); ++k) {
      int from = FoldRank(last, k, nranks());
      if (from == rank()) own_index = k;
      operands_[static_cast<size_t>(k)] =
          from == rank() ? Readable(own) : input_.Slot(from, round) + offset;
    }
    Fold(call_.reduction, Writable(dst), operands_, own_index, count);
  }

  CollectiveCall call_;
  size_t element_;
  uint64_t ticket_;
  bool open_ = false;
  Agreement agreement_;
  Board input_;
  std::vector<const void*> operands_;
};

// All ranks publish all of their input in one round and fold all of it themselves.
class SmallAllReduce : public Collective {
 public:
  using Collective::Collective;

 private:
  void Open() override { input_.Open(1); }
  Progress Run() override {
    if (!published_) {
      if (!input_.MayPublish(0)) return Progress::kBlocked;
      PutIn(input_.Slot(rank(), 0), call_.send, call_.count);
      input_.Publish(0, Board::kForAll);
      published_ = true;
    }
    if (!input_.AllHavePublished(0)) return Progress::kBlocked;
    RingPartition partition(call_.count, nranks(), element_);
    for (size_t loop = 0; loop < partition.loops(); ++loop) {
      for (int last = 0; last < nranks(); ++last) {
        Range part = partition.Chunk(loop, last);
        if (part.size() == 0) continue;
        FoldSlots(last, 0, part.begin * element_, SendAt(part.begin), ReceiveAt(part.begin),
                  part.size());
      }
    }
    input_.Consume(0, Board::kForAll);
    return Progress::kDone;
  }
  bool Needs(int peer) const override {
    return published_ ? !input_.HasPublished(peer, 0) : !input_.HasFreed(peer, 0);
  }

  bool published_ = false;
};

// Each rank folds the chunk of the ring that ends at it and publishes the result. In one round go
// equal parts of all ranks' chunks.
class LargeAllReduce : public Collective {
 public:
  LargeAllReduce(ncclComm* comm, const CollectiveCall& call)
      : Collective(comm, call),
        output_(comm, kResultBoard),
        partition_(call.count, comm->nranks, element_),
        part_(kSlotBytes / static_cast<size_t>(comm->nranks) / 64 * 64 / element_) {
    rounds_in_loop_ = DivideUp(partition_.ChunkElements(0), part_);
    size_t rounds = (partition_.loops() - 1) * rounds_in_loop_ +
                    DivideUp(partition_.ChunkElements(partition_.loops() - 1), part_);
    rounds_ = rounds;
  }

 private:
  void Open() override {
    input_.Open(rounds_);
    output_.Open(rounds_);
  }

  Progress Run() override {
    bool moved = false;
    for (bool again = true; again; moved = moved || again) {
      again = PublishInput();
      again = PublishResult() || again;
      again = Collect() || again;
      if (collected_ == rounds_) return Progress::kDone;
    }
    return moved ? Progress::kMoved : Progress::kBlocked;
  }

  bool PublishInput() {
    if (published_ == rounds_ || !input_.MayPublish(published_)) return false;
    char* slot = input_.Slot(rank(), published_);
    for (int to = 0; to < nranks(); ++to) {
      Range part = Part(published_, to);
      if (to != rank() && part.size() > 0)
        PutIn(slot + static_cast<size_t>(to) * part_ * element_, SendAt(part.begin), part.size());
    }
    input_.Publish(published_++, Board::kForAll);
    return true;
  }

  bool PublishResult() {
    if (folded_ == published_ || !input_.AllHavePublished(folded_) || !output_.MayPublish(folded_))
      return false;
    Range part = Part(folded_, rank());
    if (part.size() > 0) {
      char* slot = output_.Slot(rank(), folded_);
      FoldSlots(rank(), folded_, static_cast<size_t>(rank()) * part_ * element_, SendAt(part.begin),
                slot, part.size());
      CopyOut(ReceiveAt(part.begin), slot, part.size() * element_);
    }
    input_.Consume(folded_, Board::kForAll);
    output_.Publish(folded_++, Board::kForAll);
    return true;
  }

  bool Collect() {
    if (collected_ == folded_ || !output_.AllHavePublished(collected_)) return false;
    for (int k = 1; k < nranks(); ++k) {
      int from = (rank() + k) % nranks();
      Range part = Part(collected_, from);
      if (part.size() > 0)
        CopyOut(ReceiveAt(part.begin), output_.Slot(from, collected_), part.size() * element_);
    }
    output_.Consume(collected_++, Board::kForAll);
    return true;
  }

  bool Needs(int peer) const override {
    if (published_ < rounds_ && !input_.HasFreed(peer, published_)) return true;
    if (folded_ < published_ &&
        (!input_.HasPublished(peer, folded_) || !output_.HasFreed(peer, folded_)))
      return true;
    return collected_ < folded_ && !output_.HasPublished(peer, collected_);
  }

  // What of `owner`'s chunk is dealt with in `round`.
  [[nodiscard]] Range Part(uint64_t round, int owner) const {
    size_t loop = std::min<size_t>(round / rounds_in_loop_, partition_.loops() - 1);
    size_t within = (round - loop * rounds_in_loop_) * part_;
    Range chunk = partition_.Chunk(loop, owner);
    size_t begin = std::min(chunk.begin + within, chunk.end);
    return {begin, std::min(begin + part_, chunk.end)};
  }

  Board output_;
  RingPartition partition_;
  size_t part_;  // elements
  size_t rounds_in_loop_;
  uint64_t rounds_;
  uint64_t published_ = 0;
  uint64_t folded_ = 0;
  uint64_t collected_ = 0;
};

// Everybody publishes what the others need, everybody reads when all have: reduce-scatter and
// all-gather.
class Exchange : public Collective {
 public:
  Exchange(ncclComm* comm, const CollectiveCall& call) : Collective(comm, call) {
    size_t parts = scatters() ? static_cast<size_t>(comm->nranks) : 1;
    part_ = kSlotBytes / parts / 64 * 64 / element_;
  }

 private:
  [[nodiscard]] bool scatters() const { return call_.kind == CollectiveKind::kReduceScatter; }

  void Open() override {
    input_.Open(DivideUp(call_.count, part_));
    if (!scatters())
      CopyAcross(ReceiveAt(static_cast<size_t>(rank()) * call_.count), call_.send,
                 call_.count * element_);
  }

  Progress Run() override {
    bool moved = false;
    for (bool again = true; again; moved = moved || again) {
      again = Publish();
      again = Collect() || again;
      if (collected_ == input_.rounds()) return Progress::kDone;
    }
    return moved ? Progress::kMoved : Progress::kBlocked;
  }

  bool Publish() {
    if (published_ == input_.rounds() || !input_.MayPublish(published_)) return false;
    char* slot = input_.Slot(rank(), published_);
    Range part = Part(published_);
    if (scatters()) {
      for (int to = 0; to < nranks(); ++to)
        if (to != rank())
          PutIn(slot + static_cast<size_t>(to) * part_ * element_,
                SendAt(static_cast<size_t>(to) * call_.count + part.begin), part.size());
    } else {
      CopyIn(slot, SendAt(part.begin), part.size() * element_);
    }
    input_.Publish(published_++, Board::kForAll);
    return true;
  }

  bool Collect() {
    if (collected_ == published_ || !input_.AllHavePublished(collected_)) return false;
    Range part = Part(collected_);
    if (scatters()) {
      FoldSlots(rank(), collected_, static_cast<size_t>(rank()) * part_ * element_,
                SendAt(static_cast<size_t>(rank()) * call_.count + part.begin),
                ReceiveAt(part.begin), part.size());
    } else {
      for (int k = 1; k < nranks(); ++k) {
        int from = (rank() + k) % nranks();
        CopyOut(ReceiveAt(static_cast<size_t>(from) * call_.count + part.begin),
                input_.Slot(from, collected_), part.size() * element_);
      }
    }
    input_.Consume(collected_++, Board::kForAll);
    return true;
  }

  bool Needs(int peer) const override {
    return (published_ < input_.rounds() && !input_.HasFreed(peer, published_)) ||
           (collected_ < published_ && !input_.HasPublished(peer, collected_));
  }

  [[nodiscard]] Range Part(uint64_t round) const {
    size_t begin = round * part_;
    return {begin, std::min(begin + part_, call_.count)};
  }

  size_t part_;  // elements
  uint64_t published_ = 0;
  uint64_t collected_ = 0;
};

// The root publishes, the others read.
class Broadcast : public Collective {
 public:
  using Collective::Collective;

 private:
  [[nodiscard]] bool is_root() const { return rank() == call_.root; }
  [[nodiscard]] size_t bytes() const { return call_.count * element_; }

  void Open() override {
    input_.Open(DivideUp(bytes(), kSlotBytes));
    if (is_root()) {
      input_.SkipConsuming();
      CopyAcross(call_.receive, call_.send, bytes());
    } else {
      input_.SkipPublishing();
    }
  }

  Progress Run() override {
    bool moved = false;
    for (; done_ < input_.rounds(); ++done_, moved = true) {
      size_t begin = done_ * kSlotBytes;
      size_t length = std::min(kSlotBytes, bytes() - begin);
      if (is_root()) {
        if (!input_.MayPublish(done_)) break;
        CopyIn(input_.Slot(rank(), done_), static_cast<const char*>(call_.send) + begin, length);
        input_.Publish(done_, Board::kForUs);
      } else {
        if (!input_.HasPublished(call_.root, done_)) break;
        CopyOut(static_cast<char*>(call_.receive) + begin, input_.Slot(call_.root, done_), length);
        input_.Consume(done_, call_.root);
      }
    }
    if (done_ == input_.rounds()) return Progress::kDone;
    return moved ? Progress::kMoved : Progress::kBlocked;
  }

  bool Needs(int peer) const override {
    return is_root() ? !input_.HasFreed(peer, done_) : peer == call_.root;
  }

  uint64_t done_ = 0;
};

// The others publish, the root folds.
class ReduceToRoot : public Collective {
 public:
  using Collective::Collective;

 private:
  [[nodiscard]] bool is_root() const { return rank() == call_.root; }
  [[nodiscard]] size_t part() const { return kSlotBytes / element_; }

  void Open() override {
    input_.Open(DivideUp(call_.count, part()));
    if (is_root()) {
      input_.SkipPublishing();
    } else {
      input_.SkipConsuming();
    }
  }

  Progress Run() override {
    bool moved = false;
    for (; done_ < input_.rounds(); ++done_, moved = true) {
      size_t begin = done_ * part();
      size_t count = std::min(part(), call_.count - begin);
      if (is_root()) {
        if (!input_.AllHavePublished(done_)) break;
        FoldSlots(rank(), done_, 0, SendAt(begin), ReceiveAt(begin), count);
        input_.Consume(done_, Board::kForUs);
      } else {
        if (!input_.MayPublish(done_)) break;
        PutIn(input_.Slot(rank(), done_), SendAt(begin), count);
        input_.Publish(done_, call_.root);
      }
    }
    if (done_ == input_.rounds()) return Progress::kDone;
    return moved ? Progress::kMoved : Progress::kBlocked;
  }

  bool Needs(int peer) const override {
    return is_root() ? !input_.HasPublished(peer, done_) : !input_.HasFreed(peer, done_);
  }

  uint64_t done_ = 0;
};

}  // namespace

std::unique_ptr<Op> MakeCollective(ncclComm* comm, const CollectiveCall& call) {
  switch (call.kind) {
    case CollectiveKind::kAllReduce:
      if (call.count * ElementSize(call.reduction.dtype) <= kOneStageBytes)
        return std::make_unique<SmallAllReduce>(comm, call);
      return std::make_unique<LargeAllReduce>(comm, call);
    case CollectiveKind::kReduceScatter:
    case CollectiveKind::kAllGather:
      return std::make_unique<Exchange>(comm, call);
    case CollectiveKind::kBroadcast:
      return std::make_unique<Broadcast>(comm, call);
    case CollectiveKind::kReduce:
      return std::make_unique<ReduceToRoot>(comm, call);
  }
  return nullptr;
}

void RunAlone(const CollectiveCall& call) {
  bool reduces = call.kind != CollectiveKind::kAllGather && call.kind != CollectiveKind::kBroadcast;
  if (reduces && call.reduction.scaled) {
    Prepare(call.reduction, Writable(call.receive), Readable(call.send), call.count);
  } else {
    CopyAcross(call.receive, call.send, call.count * ElementSize(call.reduction.dtype));
  }
}

}  // namespace deja::loopback
