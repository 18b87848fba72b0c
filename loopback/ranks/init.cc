#include "loopback/ranks/init.h"

#include <algorithm>
#include <climits>
#include <cstddef>
#include <cstring>
#include <numeric>
#include <optional>

#include "loopback/ranks/board.h"
#include "loopback/ranks/last_error.h"

namespace deja::loopback {
namespace {

// What every rank of a communicator tells the others when it makes another one.
struct Proposal {
  int32_t color;
  int32_t key;
  int32_t has_id;
  ncclUniqueId id;
};

// Ends with a communicator in the program's hands.
class MakeComm : public Op {
 public:
  MakeComm(ncclComm* first_waits_for, const char* name, ncclComm_t* out, bool early)
      : Op(first_waits_for, name), out_(out), early_(early) {}

  Progress Step() final {
    if (!agreed_) {
      Progress progress = Agree();
      if (progress != Progress::kDone) return progress;
      agreed_ = true;
      if (child_ == nullptr || result() != ncclSuccess) return Progress::kDone;
      set_comm(child_.get());
      meeting_.emplace(key_, child_->rank, child_->nranks, child_->area);
    }
    Progress progress = meeting_->Step();
    if (progress != Progress::kDone) return progress;
    set_result(meeting_->result());
    if (result() == ncclSuccess) child_->ready.store(true, std::memory_order_release);
    return Progress::kDone;
  }

  void Settle() final {
    meeting_.reset();
    if (child_ == nullptr) return;
    if (result() == ncclSuccess) {
      if (!early_) {
        AddComm(child_.get());
        *out_ = child_.get();
      }
      static_cast<void>(child_.release());
    } else if (early_) {
      static_cast<void>(child_.release());  // the program has it, and aborts it
    }
  }

  // All ranks have to be there until all have joined.
  [[nodiscard]] bool Awaits(int) const override { return true; }
  [[nodiscard]] bool MustPoll() const final { return agreed_ && meeting_ && meeting_->MustPoll(); }

 protected:
  // kDone: child_ and key_ are set, or there is no child for this rank, or result() is an error.
  virtual Progress Agree() = 0;

  void HandOutEarly() {
    if (!early_) return;
    AddComm(child_.get());
    *out_ = child_.get();
  }

  // The ranks of the child are these of `parent`.
  void Expect(const ncclComm& parent, const std::vector<int>& members) {
    for (int rank : members) child_->expected.push_back(parent.ProcessOf(rank));
  }

  std::unique_ptr<ncclComm> child_;
  Key key_{};

 private:
  ncclComm_t* out_;
  bool early_;
  bool agreed_ = false;
  std::optional<Rendezvous> meeting_;
};

class Init : public MakeComm {
 public:
  Init(std::unique_ptr<ncclComm> child, const Key& key, ncclComm_t* out, bool early)
      : MakeComm(child.get(), "ncclCommInitRank", out, early) {
    child_ = std::move(child);
    key_ = key;
    HandOutEarly();
  }

 private:
  Progress Agree() override { return Progress::kDone; }
};

// Something that the ranks of the parent agree on first, over its control board.
class Agreement : public MakeComm {
 public:
  Agreement(ncclComm* parent, const char* name, ncclComm_t* out, bool early)
      : MakeComm(parent, name, out, early),
        parent_(*parent),
        board_(parent, kControlBoard),
        ticket_(parent->control.Take()) {}

  void Close() final {
    parent_.control.Leave();
    // A rank that is missing in the child is missing in the parent.
    if (result() == ncclRemoteError) parent_.Break(ncclRemoteError);
  }
  [[nodiscard]] bool Awaits(int peer) const final {
    if (read_) return MakeComm::Awaits(peer);
    return !published_ ? open_ && !board_.HasFreed(peer, 0) : !board_.HasPublished(peer, 0);
  }
  [[nodiscard]] bool SurvivesFailure() const final { return !read_ && revoked_before_; }

 protected:
  // Reads the proposals of all ranks, in rank order.
  virtual void Decide(const std::vector<Proposal>& proposals) = 0;

  Progress Agree() final {
    if (!open_) {
      if (!parent_.control.IsTurnOf(ticket_)) return Progress::kBlocked;
      board_.Open(1);
      open_ = true;
    }
    if (!published_) {
      if (!board_.MayPublish(0)) return Progress::kBlocked;
      std::memcpy(board_.Slot(parent_.rank, 0), &mine_, sizeof mine_);
      board_.Publish(0, Board::kForAll);
      published_ = true;
    }
    if (!board_.AllHavePublished(0)) return Progress::kBlocked;
    std::vector<Proposal> proposals(static_cast<size_t>(parent_.nranks));
    for (int rank = 0; rank < parent_.nranks; ++rank)
      std::memcpy(&proposals[static_cast<size_t>(rank)], board_.Slot(rank, 0), sizeof(Proposal));
    board_.Consume(0, Board::kForAll);
    read_ = true;
    Decide(proposals);
    return Progress::kDone;
  }

  ncclComm& parent_;
  Proposal mine_{};

 private:
  Board board_;
  uint64_t ticket_;
  bool revoked_before_ = parent_.revoked.load();
  bool open_ = false;
  bool published_ = false;
  bool read_ = false;
};

class Split : public Agreement {
 public:
  Split(ncclComm* parent, int color, int key, const Settings& settings, ncclComm_t* out)
      : Agreement(parent, "ncclCommSplit", out, /*early=*/false),
        settings_(settings),
        number_(parent->children.fetch_add(1)) {
    mine_.color = color;
    mine_.key = key;
  }

 private:
  void Decide(const std::vector<Proposal>& proposals) override {
    if (mine_.color == NCCL_SPLIT_NOCOLOR) return;
    std::vector<int> members;
    for (int rank = 0; rank < parent_.nranks; ++rank)
      if (proposals[static_cast<size_t>(rank)].color == mine_.color) members.push_back(rank);
    std::stable_sort(members.begin(), members.end(), [&](int a, int b) {
      return proposals[static_cast<size_t>(a)].key < proposals[static_cast<size_t>(b)].key;
    });
    auto self = std::find(members.begin(), members.end(), parent_.rank);
    child_ = NewComm(static_cast<int>(self - members.begin()), static_cast<int>(members.size()),
                     settings_);
    child_->device = parent_.device;
    Expect(parent_, members);
    key_ = KeyOfChild(parent_.area.header().nonce, "split", number_, mine_.color);
  }

  Settings settings_;
  uint64_t number_;
};

// Those that are excluded may be dead: nothing is asked of the parent but its name.
class Shrink : public MakeComm {
 public:
  Shrink(ncclComm* parent, const std::vector<int>& excluded, const Settings& settings,
         ncclComm_t* out)
      : MakeComm(nullptr, "ncclCommShrink", out, /*early=*/false) {
    int before = 0;
    uint64_t list = 14695981039346656037u;
    for (int rank : excluded) {
      if (rank < parent->rank) ++before;
      list = (list ^ static_cast<uint64_t>(rank)) * 1099511628211u;
    }
    child_ = NewComm(parent->rank - before, parent->nranks - static_cast<int>(excluded.size()),
                     settings);
    child_->device = parent->device;
    std::vector<int> members;
    for (int rank = 0; rank < parent->nranks; ++rank)
      if (!std::binary_search(excluded.begin(), excluded.end(), rank)) members.push_back(rank);
    Expect(*parent, members);
    pthread_mutex_lock(&parent->mutex);
    uint64_t number = parent->shrinks[list]++;
    pthread_mutex_unlock(&parent->mutex);
    key_ = KeyOfChild(parent->area.header().nonce, "shrink", number, static_cast<int64_t>(list));
  }

 private:
  Progress Agree() override { return Progress::kDone; }
};

class Grow : public Agreement {
 public:
  Grow(ncclComm* parent, int nranks, const ncclUniqueId* id, const Settings& settings,
       ncclComm_t* out, bool early)
      : Agreement(parent, "ncclCommGrow", out, early) {
    child_ = NewComm(parent->rank, nranks, settings);
    child_->device = parent->device;
    std::vector<int> members(static_cast<size_t>(parent->nranks));
    std::iota(members.begin(), members.end(), 0);
    Expect(*parent, members);
    if (id != nullptr) {
      mine_.has_id = 1;
      mine_.id = *id;
    }
    HandOutEarly();
  }
  [[nodiscard]] ncclComm* child() const { return child_.get(); }

 private:
  void Decide(const std::vector<Proposal>& proposals) override {
    for (const Proposal& proposal : proposals) {
      if (!proposal.has_id) continue;
      key_ = KeyOfIds(&proposal.id, 1);
      return;
    }
    set_result(Report(ncclInvalidArgument, "ncclCommGrow: no rank passed the unique id"));
  }
};

template <typename T>
T Field(const ncclConfig_t& config, size_t size, T ncclConfig_t::*field, T otherwise) {
  auto at = static_cast<size_t>(reinterpret_cast<const char*>(&(config.*field)) -
                                reinterpret_cast<const char*>(&config));
  return at + sizeof(T) <= size ? config.*field : otherwise;
}

struct IntRule {
  int ncclConfig_t::*field;
  unsigned since;  // fields newer than the caller's version hold nothing of his
  int least;
  int most;
  const char* name;
};

constexpr IntRule kIntRules[] = {
    {&ncclConfig_t::blocking, 21400, 0, 1, "blocking"},
    {&ncclConfig_t::cgaClusterSize, 21700, 0, 8, "cgaClusterSize"},
    {&ncclConfig_t::minCTAs, 21700, 1, INT_MAX, "minCTAs"},
    {&ncclConfig_t::maxCTAs, 21700, 1, INT_MAX, "maxCTAs"},
    {&ncclConfig_t::splitShare, 21800, 0, 1, "splitShare"},
    {&ncclConfig_t::collnetEnable, 22700, 0, 1, "collnetEnable"},
    {&ncclConfig_t::CTAPolicy, 22700, 0, 3, "CTAPolicy"},
    {&ncclConfig_t::shrinkShare, 22700, 0, 1, "shrinkShare"},
    {&ncclConfig_t::nvlsCTAs, 22700, 1, INT_MAX, "nvlsCTAs"},
    {&ncclConfig_t::nChannelsPerNetPeer, 22800, 1, 1024, "nChannelsPerNetPeer"},
    {&ncclConfig_t::nvlinkCentricSched, 22800, 0, 1, "nvlinkCentricSched"},
    {&ncclConfig_t::graphUsageMode, 22900, 0, 2, "graphUsageMode"},
    {&ncclConfig_t::numRmaCtx, 22900, 1, INT_MAX, "numRmaCtx"},
    {&ncclConfig_t::maxP2pPeers, 23000, 1, INT_MAX, "maxP2pPeers"},
    {&ncclConfig_t::graphStreamOrdering, 23007, 0, 1, "graphStreamOrdering"},
    {&ncclConfig_t::launchOrderImplicit, 23100, 0, 1, "launchOrderImplicit"},
    {&ncclConfig_t::numRmaSig, 23100, 1, INT_MAX, "numRmaSig"},
    {&ncclConfig_t::rmaEagerInit, 23100, 0, 1, "rmaEagerInit"},
    {&ncclConfig_t::hostCftMode, 23100, ncclHostCftEnable, ncclHostCftFallback, "hostCftMode"},
    {&ncclConfig_t::nvlsHostMode, 23200, 0, INT_MAX, "nvlsHostMode"},
};

}  // namespace

ncclResult_t ParseConfig(const ncclConfig_t* config, Settings* settings) {
  *settings = Settings{};
  if (config == nullptr) return ncclSuccess;
  constexpr size_t kSmallest = offsetof(ncclConfig_t, splitShare);
  size_t size;
  std::memcpy(&size, config, sizeof size);
  if (size < kSmallest || config->magic != NCCL_API_MAGIC)
    return Report(ncclInvalidArgument,
                  "ncclConfig_t argument not initialized via NCCL_CONFIG_INITIALIZER");
  for (const IntRule& rule : kIntRules) {
    if (config->version < rule.since) continue;
    int value = Field(*config, size, rule.field, NCCL_CONFIG_UNDEF_INT);
    if (value == NCCL_CONFIG_UNDEF_INT || (value >= rule.least && value <= rule.most)) continue;
    return Report(ncclInvalidArgument, "Invalid config %s attribute value %d", rule.name, value);
  }
  int fewest = config->minCTAs;
  int most = config->maxCTAs;
  if (fewest != NCCL_CONFIG_UNDEF_INT && most != NCCL_CONFIG_UNDEF_INT && fewest > most)
    return Report(ncclInvalidArgument, "Invalid config min/max channels attribute value %d/%d",
                  fewest, most);
  if (config->blocking != NCCL_CONFIG_UNDEF_INT) settings->blocking = config->blocking == 1;
  const char* name = nullptr;
  if (config->version >= 22700)
    name = Field(*config, size, &ncclConfig_t::commName, static_cast<const char*>(nullptr));
  if (name != nullptr) settings->name = name;
  return ncclSuccess;
}

std::unique_ptr<ncclComm> NewComm(int rank, int nranks, const Settings& settings) {
  auto comm = std::make_unique<ncclComm>();
  comm->rank = rank;
  comm->nranks = nranks;
  comm->settings = settings;
  comm->Size();
  return comm;
}

std::unique_ptr<Op> MakeInit(std::unique_ptr<ncclComm> child, const Key& key, ncclComm_t* out,
                             bool early) {
  return std::make_unique<Init>(std::move(child), key, out, early);
}

std::unique_ptr<Op> MakeSplit(ncclComm* parent, int color, int key, const Settings& settings,
                              ncclComm_t* out) {
  return std::make_unique<Split>(parent, color, key, settings, out);
}

std::unique_ptr<Op> MakeShrink(ncclComm* parent, const std::vector<int>& excluded,
                               const Settings& settings, ncclComm_t* out) {
  return std::make_unique<Shrink>(parent, excluded, settings, out);
}

std::unique_ptr<Op> MakeGrow(ncclComm* parent, int nranks, const ncclUniqueId* id,
                             const Settings& settings, ncclComm_t* out, bool early,
                             ncclComm** child) {
  auto op = std::make_unique<Grow>(parent, nranks, id, settings, out, early);
  *child = op->child();
  return op;
}

}  // namespace deja::loopback
