// Making, ending and asking communicators.
#include <algorithm>
#include <set>

#include "loopback/api/api.h"
#include "loopback/ranks/group.h"
#include "loopback/ranks/init.h"
#include "loopback/ranks/last_error.h"

namespace deja::loopback {
namespace {

ncclResult_t InitRank(ncclComm_t* out, int nranks, int rank, const ncclUniqueId* ids, int id_count,
                      const ncclConfig_t* config, const char* function) {
  Group& group = Group::Current();
  group.Start();
  auto prepare = [&]() -> ncclResult_t {
    DEJA_NCCL_CHECK(CheckPointer(out, function, "comm"));
    *out = nullptr;
    if (nranks < 1 || nranks > kMaxRanks || rank < 0 || rank >= nranks)
      return Report(ncclInvalidArgument, "Invalid rank requested : %d/%d", rank, nranks);
    if (id_count < 1 || id_count > nranks)
      return Report(ncclInvalidArgument, "improper usage of ncclCommInitRank: nId = %d, nranks=%d",
                    id_count, nranks);
    DEJA_NCCL_CHECK(CheckPointer(ids, function, "commIds"));
    for (int i = 0; i < id_count; ++i) NoticeUniqueId(ids[i]);
    Settings settings;
    DEJA_NCCL_CHECK(ParseConfig(config, &settings));
    auto comm = NewComm(rank, nranks, settings);
    DEJA_NCCL_CHECK(group.Join(comm.get()));
    group.Add(MakeInit(std::move(comm), KeyOfIds(ids, id_count), out, !settings.blocking));
    return ncclSuccess;
  };
  ncclResult_t result = group.Fail(prepare());
  ncclResult_t end = group.End();
  return result != ncclSuccess ? result : end;
}

// A child inherits its parent's configuration unless it has its own.
ncclResult_t ChildSettings(const ncclComm* parent, const ncclConfig_t* config, Settings* settings) {
  if (config != nullptr) return ParseConfig(config, settings);
  *settings = parent->settings;
  return ncclSuccess;
}

// Management calls work on a revoked communicator, others need a whole one.
ncclResult_t CheckParent(const ncclComm* comm, const char* function) {
  DEJA_NCCL_CHECK(CheckComm(comm, function));
  if (comm->revoked.load() && comm->pending.load() == 0) return ncclSuccess;
  DEJA_NCCL_CHECK(CheckReady(comm, function));
  if (comm->suspended.load())
    return Report(ncclInvalidUsage, "%s: communicator is suspended", function);
  return ncclSuccess;
}

}  // namespace
}  // namespace deja::loopback

using deja::loopback::Group;
using deja::loopback::Report;
using deja::loopback::Settings;

DEJA_NCCL_API(ncclResult_t, ncclGetUniqueId, (ncclUniqueId * uniqueId)) {
  DEJA_NCCL_CHECK(deja::loopback::CheckPointer(uniqueId, "GetUniqueId", "out"));
  deja::loopback::MakeUniqueId(uniqueId);
  return ncclSuccess;
}

DEJA_NCCL_API(ncclResult_t, ncclCommInitRank,
              (ncclComm_t * comm, int nranks, ncclUniqueId commId, int rank)) {
  return deja::loopback::InitRank(comm, nranks, rank, &commId, 1, nullptr, "CommInitRank");
}

DEJA_NCCL_API(ncclResult_t, ncclCommInitRankConfig,
              (ncclComm_t * comm, int nranks, ncclUniqueId commId, int rank,
               ncclConfig_t* config)) {
  return deja::loopback::InitRank(comm, nranks, rank, &commId, 1, config, "CommInitRankConfig");
}

DEJA_NCCL_API(ncclResult_t, ncclCommInitRankScalable,
              (ncclComm_t * newcomm, int nranks, int myrank, int nId, ncclUniqueId* commIds,
               ncclConfig_t* config)) {
  return deja::loopback::InitRank(newcomm, nranks, myrank, commIds, nId, config,
                                  "CommInitRankScalable");
}

DEJA_NCCL_API(ncclResult_t, ncclCommInitAll, (ncclComm_t * comm, int ndev, const int* devlist)) {
  DEJA_NCCL_CHECK(deja::loopback::CheckPointer(comm, "CommInitAll", "comms"));
  if (ndev < 1 || ndev > deja::loopback::kMaxRanks)
    return Report(ncclInvalidArgument, "Invalid device count requested : %d", ndev);
  std::set<int> seen;
  for (int i = 0; devlist != nullptr && i < ndev; ++i) {
    if (devlist[i] < 0) return Report(ncclInvalidArgument, "Invalid device %d", devlist[i]);
    if (!seen.insert(devlist[i]).second)
      return Report(ncclInvalidUsage, "device %d is listed twice", devlist[i]);
  }
  deja::loopback::Key key;
  deja::loopback::RandomBytes(key.data(), key.size());
  return deja::loopback::InGroup([&](Group& group) -> ncclResult_t {
    for (int i = 0; i < ndev; ++i) {
      comm[i] = nullptr;
      auto made = deja::loopback::NewComm(i, ndev, Settings{});
      made->device = devlist == nullptr ? i : devlist[i];
      DEJA_NCCL_CHECK(group.Join(made.get()));
      group.Add(deja::loopback::MakeInit(std::move(made), key, &comm[i], /*early=*/false));
    }
    return ncclSuccess;
  });
}

DEJA_NCCL_API(ncclResult_t, ncclCommSplit,
              (ncclComm_t comm, int color, int key, ncclComm_t* newcomm, ncclConfig_t* config)) {
  return deja::loopback::InGroup([&](Group& group) -> ncclResult_t {
    DEJA_NCCL_CHECK(deja::loopback::CheckParent(comm, "ncclCommSplit"));
    DEJA_NCCL_CHECK(deja::loopback::CheckPointer(newcomm, "ncclCommSplit", "newcomm"));
    if (color < 0 && color != NCCL_SPLIT_NOCOLOR)
      return Report(ncclInvalidArgument, "ncclCommSplit : invalid color %d", color);
    Settings settings;
    DEJA_NCCL_CHECK(deja::loopback::ChildSettings(comm, config, &settings));
    *newcomm = nullptr;
    DEJA_NCCL_CHECK(group.Join(comm));
    group.Add(deja::loopback::MakeSplit(comm, color, key, settings, newcomm));
    return ncclSuccess;
  });
}

DEJA_NCCL_API(ncclResult_t, ncclCommShrink,
              (ncclComm_t comm, int* excludeRanksList, int excludeRanksCount, ncclComm_t* newcomm,
               ncclConfig_t* config, int shrinkFlags)) {
  return deja::loopback::InGroup([&](Group& group) -> ncclResult_t {
    constexpr const char* kName = "ncclCommShrink";
    bool abort = (shrinkFlags & NCCL_SHRINK_ABORT) != 0;
    DEJA_NCCL_CHECK(deja::loopback::CheckComm(comm, kName));
    if (abort) {
      deja::loopback::StopOperations(comm);
    } else {
      DEJA_NCCL_CHECK(deja::loopback::CheckParent(comm, kName));
    }
    DEJA_NCCL_CHECK(deja::loopback::CheckPointer(newcomm, kName, "newcomm"));
    DEJA_NCCL_CHECK(deja::loopback::CheckPointer(excludeRanksList, kName, "excludeRanksList"));
    if (excludeRanksCount <= 0)
      return Report(ncclInvalidArgument, "%s : no rank to exclude", kName);
    std::set<int> excluded(excludeRanksList, excludeRanksList + excludeRanksCount);
    if (excluded.count(comm->rank) != 0)
      return Report(ncclInvalidArgument, "%s : called by rank %d, which is to be excluded", kName,
                    comm->rank);
    if (*excluded.begin() < 0 || *excluded.rbegin() >= comm->nranks)
      return Report(ncclInvalidArgument, "%s : excludes a rank that is not in 0..%d", kName,
                    comm->nranks - 1);
    Settings settings;
    DEJA_NCCL_CHECK(deja::loopback::ChildSettings(comm, config, &settings));
    *newcomm = nullptr;
    DEJA_NCCL_CHECK(group.Join(comm));
    group.Add(
        deja::loopback::MakeShrink(comm, {excluded.begin(), excluded.end()}, settings, newcomm));
    return ncclSuccess;
  });
}

DEJA_NCCL_API(ncclResult_t, ncclCommGetUniqueId, (ncclComm_t comm, ncclUniqueId* uniqueId)) {
  DEJA_NCCL_CHECK(deja::loopback::CheckReady(comm, "ncclCommGetUniqueId"));
  DEJA_NCCL_CHECK(deja::loopback::CheckPointer(uniqueId, "CommGetUniqueId", "uniqueId"));
  pthread_mutex_lock(&comm->mutex);
  bool unused = comm->has_grow_id;
  if (!unused) {
    *uniqueId = {};
    deja::loopback::RandomBytes(uniqueId->internal, 32);
    comm->grow_id = *uniqueId;
    comm->has_grow_id = true;
  }
  pthread_mutex_unlock(&comm->mutex);
  if (unused)
    return Report(ncclInvalidUsage, "ncclCommGetUniqueId : the previous id has not been used yet");
  return ncclSuccess;
}

DEJA_NCCL_API(ncclResult_t, ncclCommGrow,
              (ncclComm_t comm, int nRanks, const ncclUniqueId* uniqueId, int rank,
               ncclComm_t* newcomm, ncclConfig_t* config)) {
  constexpr const char* kName = "ncclCommGrow";
  DEJA_NCCL_CHECK(deja::loopback::CheckPointer(newcomm, kName, "newcomm"));
  if (nRanks <= 0 || nRanks > deja::loopback::kMaxRanks)
    return Report(ncclInvalidArgument, "%s: total ranks must be positive, got %d", kName, nRanks);
  if (comm == nullptr) {
    if (rank < 0)
      return Report(ncclInvalidArgument, "%s: new ranks must pass valid rank >= 0, got %d", kName,
                    rank);
    if (uniqueId == nullptr)
      return Report(ncclInvalidArgument, "%s: new ranks must pass non-NULL uniqueId", kName);
    return deja::loopback::InitRank(newcomm, nRanks, rank, uniqueId, 1, config, kName);
  }
  *newcomm = nullptr;
  return deja::loopback::InGroup([&](Group& group) -> ncclResult_t {
    DEJA_NCCL_CHECK(deja::loopback::CheckParent(comm, kName));
    if (nRanks <= comm->nranks)
      return Report(ncclInvalidArgument, "%s: total ranks %d is less than current ranks %d", kName,
                    nRanks, comm->nranks);
    if (rank != -1)
      return Report(ncclInvalidArgument, "%s: existing ranks must pass rank=-1, got %d", kName,
                    rank);
    Settings settings;
    DEJA_NCCL_CHECK(deja::loopback::ChildSettings(comm, config, &settings));
    pthread_mutex_lock(&comm->mutex);
    bool has_id = comm->has_grow_id || uniqueId != nullptr;
    ncclUniqueId id = uniqueId != nullptr ? *uniqueId : comm->grow_id;
    comm->has_grow_id = false;
    pthread_mutex_unlock(&comm->mutex);
    ncclComm* child = nullptr;
    auto op = deja::loopback::MakeGrow(comm, nRanks, has_id ? &id : nullptr, settings, newcomm,
                                       /*early=*/!settings.blocking, &child);
    ncclResult_t joined = group.Join(child);
    if (joined == ncclSuccess) group.Add(std::move(op));
    return joined;
  });
}

DEJA_NCCL_API(ncclResult_t, ncclCommFinalize, (ncclComm_t comm)) {
  if (comm == nullptr) return ncclSuccess;
  return deja::loopback::InGroup([&](Group& group) -> ncclResult_t {
    DEJA_NCCL_CHECK(deja::loopback::CheckReady(comm, "ncclCommFinalize"));
    // Every call has completed its work when it returns, or when the communicator is ready again.
    if (comm->revoked.load() || comm->finalized.exchange(true))
      return Report(ncclInvalidArgument,
                    "ncclCommFinalize : communicator was finalized or revoked before");
    return group.Join(comm);
  });
}

DEJA_NCCL_API(ncclResult_t, ncclCommDestroy, (ncclComm_t comm)) {
  if (comm == nullptr) return ncclSuccess;
  return deja::loopback::InGroup([&](Group& group) -> ncclResult_t {
    DEJA_NCCL_CHECK(deja::loopback::CheckComm(comm, "ncclCommDestroy"));
    if (comm->pending.load() > 0)
      DEJA_NCCL_CHECK(deja::loopback::CheckReady(comm, "ncclCommDestroy"));
    group.AddDestroy(comm);
    return ncclSuccess;
  });
}

DEJA_NCCL_API(ncclResult_t, ncclCommAbort, (ncclComm_t comm)) {
  if (comm == nullptr) return ncclSuccess;
  DEJA_NCCL_CHECK(deja::loopback::CheckComm(comm, "ncclCommAbort"));
  comm->aborted.store(true, std::memory_order_seq_cst);
  if (comm->ready.load(std::memory_order_acquire)) comm->area.Ring(comm->rank);
  deja::loopback::DeleteComm(comm, deja::loopback::RankState::kAborted);
  return ncclSuccess;
}

DEJA_NCCL_API(ncclResult_t, ncclCommRevoke, (ncclComm_t comm, int revokeFlags)) {
  if (comm == nullptr) return ncclSuccess;
  DEJA_NCCL_CHECK(deja::loopback::CheckComm(comm, "ncclCommRevoke"));
  if (revokeFlags != NCCL_REVOKE_DEFAULT)
    return Report(ncclInvalidArgument, "ncclCommRevoke : invalid flags %d", revokeFlags);
  if (comm->finalized.load() || comm->revoked.load())
    return Report(ncclInvalidArgument,
                  "ncclCommRevoke : communicator was finalized or revoked before");
  comm->revoked.store(true);
  deja::loopback::StopOperations(comm);
  return ncclSuccess;
}

DEJA_NCCL_API(ncclResult_t, ncclCommGetAsyncError, (ncclComm_t comm, ncclResult_t* asyncError)) {
  DEJA_NCCL_CHECK(deja::loopback::CheckComm(comm, "ncclGetAsyncError"));
  DEJA_NCCL_CHECK(deja::loopback::CheckPointer(asyncError, "ncclGetAsyncError", "asyncError"));
  *asyncError = deja::loopback::AsyncState(comm);
  return ncclSuccess;
}

DEJA_NCCL_API(ncclResult_t, ncclCommCount, (const ncclComm_t comm, int* count)) {
  DEJA_NCCL_CHECK(deja::loopback::CheckComm(comm, "CommCount"));
  DEJA_NCCL_CHECK(deja::loopback::CheckPointer(count, "CommCount", "count"));
  DEJA_NCCL_CHECK(deja::loopback::CheckReady(comm, "CommCount"));
  *count = comm->nranks;
  return ncclSuccess;
}

DEJA_NCCL_API(ncclResult_t, ncclCommCuDevice, (const ncclComm_t comm, int* device)) {
  DEJA_NCCL_CHECK(deja::loopback::CheckComm(comm, "CommCuDevice"));
  DEJA_NCCL_CHECK(deja::loopback::CheckPointer(device, "CommCuDevice", "devid"));
  DEJA_NCCL_CHECK(deja::loopback::CheckReady(comm, "CommCuDevice"));
  *device = comm->device;
  return ncclSuccess;
}

DEJA_NCCL_API(ncclResult_t, ncclCommUserRank, (const ncclComm_t comm, int* rank)) {
  DEJA_NCCL_CHECK(deja::loopback::CheckComm(comm, "CommUserRank"));
  DEJA_NCCL_CHECK(deja::loopback::CheckPointer(rank, "CommUserRank", "rank"));
  DEJA_NCCL_CHECK(deja::loopback::CheckReady(comm, "CommUserRank"));
  *rank = comm->rank;
  return ncclSuccess;
}
