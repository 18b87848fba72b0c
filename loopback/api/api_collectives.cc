// Collectives, sends and receives, groups, reduction operators.
#include <cstddef>
#include <cstring>

#include "loopback/algorithms/collectives.h"
#include "loopback/algorithms/p2p.h"
#include "loopback/api/api.h"
#include "loopback/ranks/group.h"
#include "loopback/ranks/last_error.h"

namespace deja::loopback {
namespace {

// Bytes of `count` elements times `ranks`, and whether that is a size at all.
ncclResult_t CheckSize(const char* function, size_t count, ncclDataType_t dtype, int ranks) {
  size_t bytes;
  if (!__builtin_mul_overflow(count, ElementSize(dtype) * static_cast<size_t>(ranks), &bytes) &&
      bytes <= static_cast<size_t>(PTRDIFF_MAX))
    return ncclSuccess;
  return Report(ncclInvalidArgument, "%s : count %zu is too large", function, count);
}

ncclResult_t CheckCall(const char* function, const ncclComm* comm, int root, ncclDataType_t dtype,
                       size_t count) {
  DEJA_NCCL_CHECK(CheckUsable(comm, function));
  if (root < 0 || root >= comm->nranks)
    return Report(ncclInvalidArgument, "%s : invalid root %d (root should be in the 0..%d range)",
                  function, root, comm->nranks);
  if (ElementSize(dtype) == 0)
    return Report(ncclInvalidArgument, "%s : invalid type %d", function, static_cast<int>(dtype));
  return CheckSize(function, count, dtype, comm->nranks);
}

ncclResult_t CheckBuffer(const char* function, const void* buffer, const char* name, size_t count) {
  if (buffer != nullptr || count == 0) return ncclSuccess;
  return Report(ncclInvalidArgument, "%s : %s is NULL and count is %zu", function, name, count);
}

ncclResult_t Collect(ncclComm* comm, CollectiveCall call, ncclDataType_t dtype, ncclRedOp_t op) {
  return InGroup([&](Group& group) -> ncclResult_t {
    DEJA_NCCL_CHECK(CheckCall(call.name, comm, call.root, dtype, call.count));
    bool is_root = comm->rank == call.root;
    if (call.kind != CollectiveKind::kBroadcast || is_root)
      DEJA_NCCL_CHECK(CheckBuffer(call.name, call.send, "sendbuff", call.count));
    if (call.kind != CollectiveKind::kReduce || is_root)
      DEJA_NCCL_CHECK(CheckBuffer(call.name, call.receive, "recvbuff", call.count));
    DEJA_NCCL_CHECK(FindReduction(comm, op, dtype, call.name, &call.reduction));
    DEJA_NCCL_CHECK(group.Join(comm));
    if (call.count == 0) return ncclSuccess;
    if (comm->nranks == 1) {
      RunAlone(call);
    } else {
      group.Add(MakeCollective(comm, call));
    }
    return ncclSuccess;
  });
}

void AddSend(Group& group, ncclComm* comm, const void* buffer, size_t bytes, int peer) {
  if (peer == comm->rank) {
    group.AddToSelf(comm, const_cast<void*>(buffer), bytes, /*is_send=*/true);
  } else if (bytes > 0) {
    group.Add(MakeSend(comm, buffer, bytes, peer));
  }
}

void AddReceive(Group& group, ncclComm* comm, void* buffer, size_t bytes, int peer) {
  if (peer == comm->rank) {
    group.AddToSelf(comm, buffer, bytes, /*is_send=*/false);
  } else if (bytes > 0) {
    group.Add(MakeReceive(comm, buffer, bytes, peer));
  }
}

struct Blocks {
  const char* send;
  char* receive;
  size_t bytes;  // of one rank's block
};

// AlltoAll, Gather and Scatter are groups of sends and receives, as in NCCL.
template <typename Add>
ncclResult_t Permute(const char* function, const void* send, void* receive, size_t count,
                     ncclDataType_t dtype, int root, bool sends_needed, bool receives_needed,
                     ncclComm* comm, const Add& add) {
  return InGroup([&](Group& group) -> ncclResult_t {
    DEJA_NCCL_CHECK(CheckCall(function, comm, root, dtype, count));
    bool is_root = comm->rank == root;
    if (sends_needed || is_root) DEJA_NCCL_CHECK(CheckBuffer(function, send, "sendbuff", count));
    if (receives_needed || is_root)
      DEJA_NCCL_CHECK(CheckBuffer(function, receive, "recvbuff", count));
    DEJA_NCCL_CHECK(group.Join(comm));
    if (count > 0)
      add(group, Blocks{static_cast<const char*>(send), static_cast<char*>(receive),
                        count * ElementSize(dtype)});
    return ncclSuccess;
  });
}

// A configuration of one call changes how NCCL carries it out, and no result.
ncclResult_t CheckConfig(const char* function, const ncclCollConfig_t* config) {
  if (config == nullptr) return ncclSuccess;
  if (config->magic != NCCL_API_MAGIC ||
      config->size < offsetof(ncclCollConfig_t, launchCompletionEvent))
    return Report(ncclInvalidArgument,
                  "%s : ncclCollConfig_t argument not initialized via NCCL_COLLCONFIG_INITIALIZER",
                  function);
  const int fewest = config->minCTAs;
  const int most = config->maxCTAs;
  if (fewest != NCCL_CONFIG_UNDEF_INT && most != NCCL_CONFIG_UNDEF_INT && fewest > most)
    return Report(ncclInvalidArgument, "%s : minCTAs %d is larger than maxCTAs %d", function,
                  fewest, most);
  return ncclSuccess;
}

}  // namespace
}  // namespace deja::loopback

using deja::loopback::Blocks;
using deja::loopback::CollectiveKind;
using deja::loopback::Group;
using deja::loopback::Report;

DEJA_NCCL_API(ncclResult_t, ncclAllReduce,
              (const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype,
               ncclRedOp_t op, ncclComm_t comm, cudaStream_t)) {
  return deja::loopback::Collect(
      comm, {CollectiveKind::kAllReduce, "AllReduce", sendbuff, recvbuff, count, {}}, datatype, op);
}

DEJA_NCCL_API(ncclResult_t, ncclReduce,
              (const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype,
               ncclRedOp_t op, int root, ncclComm_t comm, cudaStream_t)) {
  return deja::loopback::Collect(
      comm, {CollectiveKind::kReduce, "Reduce", sendbuff, recvbuff, count, {}, root}, datatype, op);
}

DEJA_NCCL_API(ncclResult_t, ncclReduceScatter,
              (const void* sendbuff, void* recvbuff, size_t recvcount, ncclDataType_t datatype,
               ncclRedOp_t op, ncclComm_t comm, cudaStream_t)) {
  return deja::loopback::Collect(
      comm, {CollectiveKind::kReduceScatter, "ReduceScatter", sendbuff, recvbuff, recvcount, {}},
      datatype, op);
}

DEJA_NCCL_API(ncclResult_t, ncclAllGather,
              (const void* sendbuff, void* recvbuff, size_t sendcount, ncclDataType_t datatype,
               ncclComm_t comm, cudaStream_t)) {
  return deja::loopback::Collect(
      comm, {CollectiveKind::kAllGather, "AllGather", sendbuff, recvbuff, sendcount, {}}, datatype,
      ncclSum);
}

DEJA_NCCL_API(ncclResult_t, ncclBroadcast,
              (const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype,
               int root, ncclComm_t comm, cudaStream_t)) {
  return deja::loopback::Collect(
      comm, {CollectiveKind::kBroadcast, "Broadcast", sendbuff, recvbuff, count, {}, root},
      datatype, ncclSum);
}

DEJA_NCCL_API(ncclResult_t, ncclBcast,
              (void* buff, size_t count, ncclDataType_t datatype, int root, ncclComm_t comm,
               cudaStream_t)) {
  return deja::loopback::Collect(
      comm, {CollectiveKind::kBroadcast, "Bcast", buff, buff, count, {}, root}, datatype, ncclSum);
}

DEJA_NCCL_API(ncclResult_t, ncclSend,
              (const void* sendbuff, size_t count, ncclDataType_t datatype, int peer,
               ncclComm_t comm, cudaStream_t)) {
  return deja::loopback::InGroup([&](Group& group) -> ncclResult_t {
    DEJA_NCCL_CHECK(deja::loopback::CheckCall("Send", comm, peer, datatype, count));
    DEJA_NCCL_CHECK(deja::loopback::CheckBuffer("Send", sendbuff, "sendbuff", count));
    DEJA_NCCL_CHECK(group.Join(comm));
    deja::loopback::AddSend(group, comm, sendbuff, count * deja::loopback::ElementSize(datatype),
                            peer);
    return ncclSuccess;
  });
}

DEJA_NCCL_API(ncclResult_t, ncclRecv,
              (void* recvbuff, size_t count, ncclDataType_t datatype, int peer, ncclComm_t comm,
               cudaStream_t)) {
  return deja::loopback::InGroup([&](Group& group) -> ncclResult_t {
    DEJA_NCCL_CHECK(deja::loopback::CheckCall("Recv", comm, peer, datatype, count));
    DEJA_NCCL_CHECK(deja::loopback::CheckBuffer("Recv", recvbuff, "recvbuff", count));
    DEJA_NCCL_CHECK(group.Join(comm));
    deja::loopback::AddReceive(group, comm, recvbuff, count * deja::loopback::ElementSize(datatype),
                               peer);
    return ncclSuccess;
  });
}

DEJA_NCCL_API(ncclResult_t, ncclAlltoAll,
              (const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype,
               ncclComm_t comm, cudaStream_t)) {
  return deja::loopback::Permute(
      "AlltoAll", sendbuff, recvbuff, count, datatype, 0, true, true, comm,
      [&](Group& group, const Blocks& blocks) {
        for (int peer = 0; peer < comm->nranks; ++peer) {
          size_t at = static_cast<size_t>(peer) * blocks.bytes;
          deja::loopback::AddSend(group, comm, blocks.send + at, blocks.bytes, peer);
          deja::loopback::AddReceive(group, comm, blocks.receive + at, blocks.bytes, peer);
        }
      });
}

DEJA_NCCL_API(ncclResult_t, ncclGather,
              (const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype,
               int root, ncclComm_t comm, cudaStream_t)) {
  return deja::loopback::Permute(
      "Gather", sendbuff, recvbuff, count, datatype, root, true, false, comm,
      [&](Group& group, const Blocks& blocks) {
        deja::loopback::AddSend(group, comm, blocks.send, blocks.bytes, root);
        if (comm->rank != root) return;
        for (int peer = 0; peer < comm->nranks; ++peer)
          deja::loopback::AddReceive(group, comm,
                                     blocks.receive + static_cast<size_t>(peer) * blocks.bytes,
                                     blocks.bytes, peer);
      });
}

DEJA_NCCL_API(ncclResult_t, ncclScatter,
              (const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype,
               int root, ncclComm_t comm, cudaStream_t)) {
  return deja::loopback::Permute(
      "Scatter", sendbuff, recvbuff, count, datatype, root, false, true, comm,
      [&](Group& group, const Blocks& blocks) {
        deja::loopback::AddReceive(group, comm, blocks.receive, blocks.bytes, root);
        if (comm->rank != root) return;
        for (int peer = 0; peer < comm->nranks; ++peer)
          deja::loopback::AddSend(group, comm,
                                  blocks.send + static_cast<size_t>(peer) * blocks.bytes,
                                  blocks.bytes, peer);
      });
}

DEJA_NCCL_API(ncclResult_t, ncclAllReduceConfig,
              (const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype,
               ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream,
               const ncclCollConfig_t* config)) {
  DEJA_NCCL_CHECK(deja::loopback::CheckConfig("AllReduceConfig", config));
  return pncclAllReduce(sendbuff, recvbuff, count, datatype, op, comm, stream);
}

DEJA_NCCL_API(ncclResult_t, ncclBroadcastConfig,
              (const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype,
               int root, ncclComm_t comm, cudaStream_t stream, const ncclCollConfig_t* config)) {
  DEJA_NCCL_CHECK(deja::loopback::CheckConfig("BroadcastConfig", config));
  return pncclBroadcast(sendbuff, recvbuff, count, datatype, root, comm, stream);
}

DEJA_NCCL_API(ncclResult_t, ncclReduceConfig,
              (const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype,
               ncclRedOp_t op, int root, ncclComm_t comm, cudaStream_t stream,
               const ncclCollConfig_t* config)) {
  DEJA_NCCL_CHECK(deja::loopback::CheckConfig("ReduceConfig", config));
  return pncclReduce(sendbuff, recvbuff, count, datatype, op, root, comm, stream);
}

DEJA_NCCL_API(ncclResult_t, ncclAllGatherConfig,
              (const void* sendbuff, void* recvbuff, size_t sendcount, ncclDataType_t datatype,
               ncclComm_t comm, cudaStream_t stream, const ncclCollConfig_t* config)) {
  DEJA_NCCL_CHECK(deja::loopback::CheckConfig("AllGatherConfig", config));
  return pncclAllGather(sendbuff, recvbuff, sendcount, datatype, comm, stream);
}

DEJA_NCCL_API(ncclResult_t, ncclReduceScatterConfig,
              (const void* sendbuff, void* recvbuff, size_t recvcount, ncclDataType_t datatype,
               ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream,
               const ncclCollConfig_t* config)) {
  DEJA_NCCL_CHECK(deja::loopback::CheckConfig("ReduceScatterConfig", config));
  return pncclReduceScatter(sendbuff, recvbuff, recvcount, datatype, op, comm, stream);
}

DEJA_NCCL_API(ncclResult_t, ncclAlltoAllConfig,
              (const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype,
               ncclComm_t comm, cudaStream_t stream, const ncclCollConfig_t* config)) {
  DEJA_NCCL_CHECK(deja::loopback::CheckConfig("AlltoAllConfig", config));
  return pncclAlltoAll(sendbuff, recvbuff, count, datatype, comm, stream);
}

DEJA_NCCL_API(ncclResult_t, ncclGatherConfig,
              (const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype,
               int root, ncclComm_t comm, cudaStream_t stream, const ncclCollConfig_t* config)) {
  DEJA_NCCL_CHECK(deja::loopback::CheckConfig("GatherConfig", config));
  return pncclGather(sendbuff, recvbuff, count, datatype, root, comm, stream);
}

DEJA_NCCL_API(ncclResult_t, ncclScatterConfig,
              (const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype,
               int root, ncclComm_t comm, cudaStream_t stream, const ncclCollConfig_t* config)) {
  DEJA_NCCL_CHECK(deja::loopback::CheckConfig("ScatterConfig", config));
  return pncclScatter(sendbuff, recvbuff, count, datatype, root, comm, stream);
}

DEJA_NCCL_API(ncclResult_t, ncclGroupStart, (void)) {
  Group::Current().Start();
  return ncclSuccess;
}

DEJA_NCCL_API(ncclResult_t, ncclGroupEnd, (void)) {
  return Group::Current().End();
}

DEJA_NCCL_API(ncclResult_t, ncclGroupSimulateEnd, (ncclSimInfo_t * simInfo)) {
  size_t size = 0;
  if (simInfo != nullptr) {
    std::memcpy(&size, simInfo, sizeof size);
    if (size < sizeof *simInfo || simInfo->magic != NCCL_SIM_INFO_MAGIC)
      return Group::Current().Fail(
          Report(ncclInvalidArgument,
                 "ncclSimInfo_t argument not initialized via NCCL_SIM_INFO_INITIALIZER"));
  }
  return Group::Current().SimulateEnd(simInfo == nullptr ? nullptr : &simInfo->estimatedTime);
}

DEJA_NCCL_API(ncclResult_t, ncclRedOpCreatePreMulSum,
              (ncclRedOp_t * op, void* scalar, ncclDataType_t datatype,
               ncclScalarResidence_t residence, ncclComm_t comm)) {
  constexpr const char* kName = "ncclRedOpCreatePreMulSum";
  DEJA_NCCL_CHECK(deja::loopback::CheckReady(comm, kName));
  DEJA_NCCL_CHECK(deja::loopback::CheckPointer(op, kName, "op"));
  DEJA_NCCL_CHECK(deja::loopback::CheckPointer(scalar, kName, "scalar"));
  size_t bytes = deja::loopback::ElementSize(datatype);
  if (bytes == 0)
    return Report(ncclInvalidArgument, "%s : invalid type %d", kName, static_cast<int>(datatype));
  if (residence != ncclScalarDevice && residence != ncclScalarHostImmediate)
    return Report(ncclInvalidArgument, "%s : invalid residence %d", kName,
                  static_cast<int>(residence));
  deja::loopback::UserOperator made;
  made.in_use = true;
  made.dtype = datatype;
  made.by_pointer = residence == ncclScalarDevice;
  made.pointer = scalar;
  if (!made.by_pointer) std::memcpy(made.scalar, scalar, bytes);
  pthread_mutex_lock(&comm->mutex);
  auto& operators = comm->operators;
  size_t index = 0;
  while (index < operators.size() && operators[index].in_use) ++index;
  if (index == operators.size()) operators.emplace_back();
  operators[index] = made;
  pthread_mutex_unlock(&comm->mutex);
  *op = static_cast<ncclRedOp_t>(static_cast<size_t>(ncclNumOps) + index);
  return ncclSuccess;
}

DEJA_NCCL_API(ncclResult_t, ncclRedOpDestroy, (ncclRedOp_t op, ncclComm_t comm)) {
  int number = static_cast<int>(op);
  if (number >= 0 && number < ncclNumOps)
    return Report(ncclInvalidArgument, "ncclRedOpDestroy : operator is a NCCL builtin.");
  if (number < 0) return Report(ncclInvalidArgument, "ncclRedOpDestroy :  operator is garbage.");
  if (comm == nullptr || !deja::loopback::IsComm(comm))
    return Report(ncclInvalidArgument, "ncclRedOpDestroy : invalid communicator passed.");
  auto index = static_cast<size_t>(number - ncclNumOps);
  pthread_mutex_lock(&comm->mutex);
  bool known = index < comm->operators.size() && comm->operators[index].in_use;
  if (known) comm->operators[index].in_use = false;
  pthread_mutex_unlock(&comm->mutex);
  if (known) return ncclSuccess;
  return Report(ncclInvalidArgument, "ncclRedOpDestroy : operator unknown to this communicator.");
}
