#include "loopback/ranks/op.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>

#include "loopback/ranks/last_error.h"
#include "loopback/ranks/process.h"

namespace deja::loopback {
namespace {

// How long a sleeper takes at most to notice that a peer died.
constexpr uint64_t kLookAroundNanos = 100000000;
// What rings no doorbell is looked at this often: soon at first, then less and less.
constexpr uint64_t kFirstPollNanos = 200000;
constexpr uint64_t kLastPollNanos = 10000000;

class Runner {
 public:
  explicit Runner(OpList& ops) : ops_(ops) {
    for (auto& op : ops_) open_.push_back(op.get());
  }

  ncclResult_t Run() {
    int idle = 0;
    while (!open_.empty()) {
      if (StepAll()) {
        idle = 0;
        poll_nanos_ = kFirstPollNanos;
      } else if (idle < kSpins) {
        ++idle;
        Relax(idle);
      } else {
        Sleep();
        idle = 0;
      }
    }
    for (auto& op : ops_)
      if (op->result() != ncclSuccess) return op->result();
    return ncclSuccess;
  }

 private:
  // With fewer processors than ranks the peer may be waiting for ours.
  static constexpr int kSpins = 24;
  static void Relax(int idle) {
    if (idle < 8) {
#if defined(__x86_64__)
      for (int i = 0; i < 8; ++i) __builtin_ia32_pause();
#endif
    } else {
      sched_yield();
    }
  }

  // True if anything happened.
  bool StepAll() {
    bool moved = false;
    for (size_t i = 0; i < open_.size();) {
      Op* op = open_[i];
      Progress progress = op->Step();
      if (progress == Progress::kBlocked && Fails(op)) progress = Progress::kDone;
      if (progress != Progress::kBlocked) moved = true;
      if (progress != Progress::kDone) {
        ++i;
        continue;
      }
      ncclComm* comm = op->comm();
      if (op->result() != ncclSuccess && comm != nullptr && !comm->stopping.load())
        comm->Break(op->result());
      op->Close();
      open_.erase(open_.begin() + static_cast<ptrdiff_t>(i));
    }
    return moved;
  }

  // Whether a blocked operation will never go on; sets its result then.
  static bool Fails(Op* op) {
    ncclComm* comm = op->comm();
    if (comm == nullptr) return false;
    if (comm->aborted.load(std::memory_order_acquire)) {
      op->set_result(
          Report(ncclInternalError, "%s: the communicator was aborted on this rank", op->name()));
      return true;
    }
    if (comm->stopping.load(std::memory_order_acquire)) {
      op->set_result(Report(ncclInternalError, "%s: stopped by another thread", op->name()));
      return true;
    }
    if (op->SurvivesFailure()) return false;
    if (comm->revoked.load(std::memory_order_acquire)) {
      op->set_result(Report(ncclInvalidUsage, "%s: communicator was revoked", op->name()));
      return true;
    }
    int peer = op->missing();
    if (peer < 0 && comm->area.valid())
      peer = static_cast<int>(comm->area.header().broken_by.load(std::memory_order_acquire)) - 1;
    if (peer < 0) return false;
    op->set_result(Report(ncclRemoteError,
                          "%s: rank %d of %d (process %d) ended or gave up the communicator while "
                          "others were waiting for it",
                          op->name(), peer, comm->nranks, comm->ProcessOf(peer).pid));
    return true;
  }

  void Sleep() {
    bells_.clear();
    bool poll = false;
    asleep_.clear();
    for (Op* op : open_) {
      poll = poll || op->MustPoll();
      ncclComm* comm = op->comm();
      if (comm == nullptr || !comm->area.valid() ||
          std::find(asleep_.begin(), asleep_.end(), comm) != asleep_.end())
        continue;
      asleep_.push_back(comm);
      RankCell& cell = comm->area.cell(comm->rank);
      cell.sleepers.fetch_add(1, std::memory_order_seq_cst);
      bells_.push_back({&cell.doorbell, cell.doorbell.load(std::memory_order_seq_cst)});
    }
    // A ring between our last look and the announcement above went unheard: look once more.
    if (!StepAll()) {
      WaitForDoorbells(bells_, poll ? poll_nanos_ : kLookAroundNanos);
      poll_nanos_ = std::min(poll_nanos_ + poll_nanos_ / 16, kLastPollNanos);
      LookAround();
    }
    for (const Doorbell& bell : bells_) SleepersOf(bell).fetch_sub(1, std::memory_order_seq_cst);
  }

  static std::atomic<uint32_t>& SleepersOf(const Doorbell& bell) {
    auto* cell = reinterpret_cast<RankCell*>(reinterpret_cast<char*>(bell.word) -
                                             offsetof(RankCell, doorbell));
    return cell->sleepers;
  }

  // Are those we wait for still there?
  void LookAround() {
    uint64_t now = MonotonicNanos();
    if (looked_ == 0) looked_ = now;
    if (now - looked_ < kLookAroundNanos) return;
    looked_ = now;
    // What a peer did before it died counts: see first whether we still need it.
    if (StepAll()) return;
    for (Op* op : open_) {
      ncclComm* comm = op->comm();
      for (int peer = 0; comm != nullptr && peer < comm->nranks; ++peer) {
        if (peer == comm->rank || !op->Awaits(peer) || !comm->HasLeft(peer)) continue;
        // It may have done its part between our look and its end.
        if (!op->Awaits(peer)) continue;
        op->set_missing(peer);
        if (!comm->area.valid()) break;
        uint32_t none = 0;
        comm->area.header().broken_by.compare_exchange_strong(none,
                                                              static_cast<uint32_t>(peer) + 1);
        comm->area.RingAll();
        break;
      }
    }
  }

  OpList& ops_;
  std::vector<Op*> open_;
  std::vector<ncclComm*> asleep_;
  std::vector<Doorbell> bells_;
  uint64_t looked_ = 0;
  uint64_t poll_nanos_ = kFirstPollNanos;
};

}  // namespace

ncclResult_t RunOps(OpList& ops) {
  return Runner(ops).Run();
}

}  // namespace deja::loopback
