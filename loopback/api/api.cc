#include "loopback/api/api.h"

#include <cstring>

#include "loopback/ranks/last_error.h"

namespace deja::loopback {

ncclResult_t CheckPointer(const void* pointer, const char* function, const char* argument) {
  if (pointer != nullptr) return ncclSuccess;
  return Report(ncclInvalidArgument, "%s : %s argument is NULL", function, argument);
}

ncclResult_t CheckComm(const ncclComm* comm, const char* function) {
  DEJA_NCCL_CHECK(CheckPointer(comm, function, "comm"));
  if (IsComm(comm)) return ncclSuccess;
  return Report(ncclInvalidArgument, "%s : comm %p is no communicator, or is one no longer",
                function, static_cast<const void*>(comm));
}

ncclResult_t AsyncState(const ncclComm* comm) {
  if (comm->pending.load(std::memory_order_acquire) > 0) return ncclInProgress;
  ncclResult_t failure = comm->failure.load(std::memory_order_acquire);
  if (failure != ncclSuccess) return failure;
  // Another rank may have found out first.
  if (comm->ready.load(std::memory_order_acquire) && !comm->revoked.load() &&
      comm->area.header().broken_by.load(std::memory_order_acquire) != 0)
    return ncclRemoteError;
  return ncclSuccess;
}

ncclResult_t CheckReady(const ncclComm* comm, const char* function) {
  DEJA_NCCL_CHECK(CheckComm(comm, function));
  ncclResult_t state = AsyncState(comm);
  if (state == ncclSuccess) return ncclSuccess;
  if (state == ncclInProgress)
    return Report(ncclInvalidArgument,
                  "%s : Attempt to use communicator before the previous operation returned "
                  "ncclSuccess",
                  function);
  if (state == ncclRemoteError && comm->ready.load()) {
    uint32_t broken = comm->area.header().broken_by.load();
    if (broken != 0)
      return Report(state, "%s : rank %u of this communicator ended or gave it up earlier",
                    function, broken - 1);
  }
  return Report(state, "%s : this communicator failed earlier", function);
}

ncclResult_t CheckUsable(const ncclComm* comm, const char* function) {
  DEJA_NCCL_CHECK(CheckComm(comm, function));
  if (comm->revoked.load())
    return Report(ncclInvalidUsage, "%s: communicator was revoked", function);
  DEJA_NCCL_CHECK(CheckReady(comm, function));
  if (comm->finalized.load())
    return Report(ncclInvalidUsage, "%s: communicator was finalized", function);
  if (comm->suspended.load())
    return Report(ncclInvalidUsage, "%s: communicator is suspended", function);
  return ncclSuccess;
}

ncclResult_t FindReduction(ncclComm* comm, ncclRedOp_t op, ncclDataType_t dtype,
                           const char* function, Reduction* reduction) {
  int number = static_cast<int>(op);
  if (number < 0)
    return Report(ncclInvalidArgument, "%s : invalid reduction operation %d", function, number);
  if (number < ncclNumOps) {
    *reduction = Reduction::BuiltIn(op, dtype, comm->nranks);
    return ncclSuccess;
  }
  auto index = static_cast<size_t>(number - ncclNumOps);
  pthread_mutex_lock(&comm->mutex);
  bool known = index < comm->operators.size() && comm->operators[index].in_use;
  UserOperator user = known ? comm->operators[index] : UserOperator{};
  pthread_mutex_unlock(&comm->mutex);
  if (!known)
    return Report(ncclInvalidArgument, "%s : reduction operation %d unknown to this communicator",
                  function, number);
  if (user.dtype != dtype)
    return Report(ncclInvalidArgument,
                  "Data type supplied to user-created ncclRedOp_t does not match type given to "
                  "reduction operation");
  *reduction = Reduction::PreMulSum(dtype, user.by_pointer ? user.pointer : user.scalar);
  return ncclSuccess;
}

}  // namespace deja::loopback
