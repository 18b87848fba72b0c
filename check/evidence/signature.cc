#include "check/evidence/signature.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "api/c10d_table.h"
#include "api/find_api.h"
#include "api/nccl_table.h"
#include "api/roles.h"
#include "digest/elements.h"

namespace deja::check {
namespace {

using api::C10dApi;
using api::NcclApi;
using api::Role;

// ncclSum to ncclAvg; numbers from there on are operators that the program has made.
constexpr std::array<std::string_view, Signature::kReductions> kReductions = {"sum", "prod", "max",
                                                                              "min", "avg"};

std::optional<Operation> OperationOfNccl(uint32_t api) {
  switch (static_cast<NcclApi>(api)) {
    case NcclApi::ncclReduce:
    case NcclApi::ncclReduceConfig:
      return Operation::kReduce;
    case NcclApi::ncclBcast:
    case NcclApi::ncclBroadcast:
    case NcclApi::ncclBroadcastConfig:
      return Operation::kBroadcast;
    case NcclApi::ncclAllReduce:
    case NcclApi::ncclAllReduceConfig:
      return Operation::kAllReduce;
    case NcclApi::ncclReduceScatter:
    case NcclApi::ncclReduceScatterConfig:
      return Operation::kReduceScatter;
    case NcclApi::ncclAllGather:
    case NcclApi::ncclAllGatherConfig:
      return Operation::kAllGather;
    case NcclApi::ncclAlltoAll:
    case NcclApi::ncclAlltoAllConfig:
      return Operation::kAllToAll;
    case NcclApi::ncclGather:
    case NcclApi::ncclGatherConfig:
      return Operation::kGather;
    case NcclApi::ncclScatter:
    case NcclApi::ncclScatterConfig:
      return Operation::kScatter;
    case NcclApi::ncclSend:
      return Operation::kSend;
    case NcclApi::ncclRecv:
      return Operation::kRecv;
    default:
      return std::nullopt;
  }
}

std::optional<Operation> OperationOfC10d(uint32_t api) {
  switch (static_cast<C10dApi>(api)) {
    case C10dApi::c10d_allreduce:
    case C10dApi::c10d_allreduce_coalesced:
      return Operation::kAllReduce;
    case C10dApi::c10d_broadcast:
      return Operation::kBroadcast;
    case C10dApi::c10d_reduce:
      return Operation::kReduce;
    case C10dApi::c10d_allgather:
    case C10dApi::c10d_allgather_coalesced:
    case C10dApi::c10d_allgather_base:
    case C10dApi::c10d_allgather_into_tensor_coalesced:
      return Operation::kAllGather;
    case C10dApi::c10d_gather:
      return Operation::kGather;
    case C10dApi::c10d_scatter:
      return Operation::kScatter;
    case C10dApi::c10d_reduce_scatter:
    case C10dApi::c10d_reduce_scatter_base:
    case C10dApi::c10d_reduce_scatter_tensor_coalesced:
      return Operation::kReduceScatter;
    case C10dApi::c10d_alltoall:
    case C10dApi::c10d_alltoall_base:
      return Operation::kAllToAll;
    case C10dApi::c10d_barrier:
    case C10dApi::c10d_monitored_barrier:
      return Operation::kBarrier;
    case C10dApi::c10d_send:
      return Operation::kSend;
    case C10dApi::c10d_recv:
      return Operation::kRecv;
    case C10dApi::c10d_recv_anysource:
      return Operation::kRecvAnySource;
    default:
      return std::nullopt;
  }
}

std::optional<uint64_t> Argument(const api::ApiInfo& info, const format::CallEnter& enter,
                                 Role role) {
  const int index = info.Find(role);
  if (index < 0 || static_cast<size_t>(index) >= enter.args.size()) return std::nullopt;
  return enter.args[static_cast<size_t>(index)];
}

// Operations of c10d say how much they read and write. What all ranks must have alike is on one
// side, and with parts that need not be equal nowhere.
uint64_t CountOfC10d(Operation operation, uint64_t read, uint64_t written) {
  switch (operation) {
    case Operation::kBroadcast:
      return std::max(read, written);
    case Operation::kAllGather:
    case Operation::kScatter:
    case Operation::kRecv:
    case Operation::kRecvAnySource:
      return written;
    case Operation::kAllToAll:
      return Signature::kAnyCount;
    default:
      return read;
  }
}

}  // namespace

std::string_view NameOf(Operation operation) {
  constexpr std::array<std::string_view, 12> kNames = {
      "Reduce", "Broadcast", "AllReduce", "ReduceScatter", "AllGather", "AlltoAll",
      "Gather", "Scatter",   "Barrier",   "Send",          "Recv",      "Recv from any"};
  return kNames[static_cast<size_t>(operation)];
}

std::optional<Signature> SignatureOf(const format::CallEnter& enter) {
  const api::ApiInfo* info = api::FindApi(enter.api);
  if (info == nullptr) return std::nullopt;
  const bool is_nccl = api::FindNccl(enter.api) != nullptr;
  const auto operation = is_nccl ? OperationOfNccl(enter.api) : OperationOfC10d(enter.api);
  if (!operation) return std::nullopt;
  Signature signature;
  signature.operation = *operation;
  signature.api = enter.api;
  if (const auto type = Argument(*info, enter, Role::kDType))
    signature.dtype = static_cast<uint32_t>(*type);
  if (const auto count = Argument(*info, enter, Role::kCount)) signature.count = *count;
  const auto read = Argument(*info, enter, Role::kInCount);
  const auto written = Argument(*info, enter, Role::kOutCount);
  if (read && written) signature.count = CountOfC10d(*operation, *read, *written);
  if (const auto op = Argument(*info, enter, Role::kRedOp); op && *op < kReductions.size())
    signature.redop = static_cast<int64_t>(*op);
  if (const auto root = Argument(*info, enter, Role::kRoot))
    signature.root = static_cast<int32_t>(*root);
  return signature;
}

Field FirstDifference(const Signature& a, const Signature& b) {
  if (a.operation != b.operation) return Field::kOperation;
  if (a.dtype != b.dtype) return Field::kType;
  if (a.count != b.count) return Field::kCount;
  // An operator of the program's own has another number on each rank.
  const bool both_known = a.redop != Signature::kNone && b.redop != Signature::kNone;
  if (both_known && a.redop != b.redop) return Field::kReduction;
  return a.root != b.root ? Field::kRoot : Field::kNothing;
}

bool Fit(const Signature& a, const Signature& b) {
  return FirstDifference(a, b) == Field::kNothing;
}

std::string_view NameOf(Field field) {
  constexpr std::array<std::string_view, 6> kNames = {"nothing", "op",    "dtype",
                                                      "count",   "redop", "root"};
  return kNames[static_cast<size_t>(field)];
}

std::string Describe(const Signature& signature) {
  std::string text(NameOf(signature.operation));
  if (signature.dtype != Signature::kNoType) {
    text += ' ' + digest::DTypeText(signature.dtype);
    if (signature.count != Signature::kAnyCount) text += fmt::format("[{}]", signature.count);
  }
  if (signature.redop != Signature::kNone)
    text += fmt::format(" {}", kReductions[static_cast<size_t>(signature.redop)]);
  if (signature.root != Signature::kNone) text += fmt::format(" root {}", signature.root);
  return text;
}

}  // namespace deja::check
