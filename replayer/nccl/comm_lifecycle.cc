// Calls that are matched in order on their thread (communicators, registrations, operators), and
// queries, which are computed from what is known.
#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <set>

#include "api/curand_table.h"
#include "api/nccl_table.h"
#include "common/text/nccl_result_text.h"
#include "digest/elements.h"
#include "include/compat/nccl.h"
#include "preload/cuda/device.h"
#include "replayer/core/ending.h"
#include "replayer/core/ordered.h"
#include "replayer/core/session.h"
#include "replayer/nccl/computed_results.h"
#include "replayer/nccl/nccl_serve.h"
#include "replayer/nccl/operation_bytes.h"
#include "replayer/nccl/served_comms.h"
#include "replayer/process/program_memory.h"
#include "replayer/report/live_trace.h"
#include "replayer/turns/turns.h"

namespace deja::replayer {

using api::NcclApi;
using api::Role;
using preload::Call;

namespace {

void* Pointer(uint64_t word) {
  return reinterpret_cast<void*>(word);
}

// Arguments whose value says what the call does, wherever the program's memory lies.
bool IsCompared(Role role) {
  switch (role) {
    case Role::kCount:
    case Role::kDType:
    case Role::kRedOp:
    case Role::kRoot:
    case Role::kPeer:
    case Role::kResidence:
    case Role::kRank:
    case Role::kNRanks:
    case Role::kInt:
    case Role::kUInt:
    case Role::kSize:
    case Role::kFlags:
    case Role::kIntCount:
    case Role::kIdCount:
    case Role::kColor:
    case Role::kReal:
      return true;
    default:
      return false;
  }
}

std::string ArgumentText(const api::ParamInfo& param, uint64_t value) {
  if (const char* name = api::CurandValueName(param.type, value)) return name;
  switch (param.role) {
    case Role::kReal:
      return digest::DoubleText(std::bit_cast<double>(value));
    case Role::kCount:
    case Role::kSize:
    case Role::kUInt:
      return std::to_string(value);
    default:
      return std::to_string(static_cast<int64_t>(value));
  }
}

// A registration or window of the program: something to point to. Never freed.
struct ServedHandle {
  static constexpr uint64_t kMagic = 0x6c646e6148616a44;
  uint64_t magic = kMagic;
  void* buffer = nullptr;
};

// Strings that the program may keep.
const char* KeepString(std::string_view text) {
  static std::mutex mutex;
  static std::set<std::string>* kept = new std::set<std::string>();  // programs keep the pointers
  std::lock_guard<std::mutex> lock(mutex);
  return kept->emplace(text).first->c_str();
}

// The table of the strings, which lie one after the other, each with a final zero.
const char** KeepTable(std::string_view strings) {
  std::vector<const char*> keys;
  while (!strings.empty()) {
    const size_t end = std::min(strings.find('\0'), strings.size());
    keys.push_back(KeepString(strings.substr(0, end)));
    strings.remove_prefix(std::min(end + 1, strings.size()));
  }
  auto** table = new const char*[keys.size() + 1];  // programs keep it
  std::copy(keys.begin(), keys.end(), table);
  table[keys.size()] = nullptr;
  return table;
}

void MakeComms(Session& session, ThreadState& thread, const RecordedCall& recorded,
               const Call& call) {
  const auto created = session.plan().Created(recorded.created);
  if (const int all = call.info->Find(Role::kNewComms); all >= 0) {
    const size_t room = std::min<uint64_t>(created.size(), call.ArgOf(Role::kNRanks));
    for (size_t i = 0; call.args[all] != 0 && i < room; ++i)
      Store<uint64_t>(call.args[all] + i * sizeof(void*),
                      session.Find<ServedComms>()->New(thread, created[i], recorded));
    return;
  }
  const int one = call.info->Find(Role::kNewComm);
  if (one < 0 || call.args[one] == 0) return;
  if (!created.empty()) {
    Store<uint64_t>(call.args[one], session.Find<ServedComms>()->New(thread, created[0], recorded));
    return;
  }
  if (recorded.result != ncclSuccess && recorded.result != ncclInProgress) return;
  if (NcclOf(thread).depth > 0) {
    PendingComm pending;
    pending.out = call.args[one];
    if (const ServedComm* parent = ServedComm::From(call.ArgOf(Role::kComm)))
      pending.parent = parent->number();
    if (call.info->Find(Role::kRank) >= 0)
      pending.rank = static_cast<int32_t>(call.ArgOf(Role::kRank));
    NcclOf(thread).pending_comms.push_back(pending);
    return;
  }
  Store<uint64_t>(call.args[one], 0);  // ncclCommSplit without a colour
}

}  // namespace

std::string CompareArguments(const ReplayPlan& plan, const RecordedCall& recorded,
                             const Call& live) {
  const auto args = plan.Words(recorded.args);
  std::string text;
  auto differs = [&text](const api::ParamInfo& param, uint64_t was, uint64_t is) {
    if (!text.empty()) text += "; ";
    text += std::string(param.name) + " is " + ArgumentText(param, is) + ", recorded " +
            ArgumentText(param, was);
  };
  for (uint32_t i = 0; i < live.info->param_count && i < args.size(); ++i) {
    const api::ParamInfo& param = live.info->params[i];
    if (param.role == Role::kComm) {
      const ServedComm* comm = ServedComm::From(live.args[i]);
      const uint64_t number = comm == nullptr ? 0 : comm->number();
      if (number != args[i]) differs(param, args[i] - 1, number - 1);
    } else if (IsCompared(param.role) && args[i] != live.args[i]) {
      differs(param, args[i], live.args[i]);
    }
  }
  return text;
}

void WriteOuts(Session& session, const RecordedCall& recorded, Call& call) {
  const auto outs = session.plan().Words(recorded.outs);
  std::string_view blob = session.plan().Bytes(recorded.out_blob);
  auto take = [&blob](size_t n) {
    const std::string_view part = blob.substr(0, n);
    blob.remove_prefix(part.size());
    return part;
  };
  size_t next = 0;
  auto word = [&]() { return next < outs.size() ? outs[next++] : 0; };
  if (recorded.result != ncclSuccess && recorded.result != ncclInProgress) return;
  for (uint32_t i = 0; i < call.info->param_count; ++i) {
    const uint64_t out = call.args[i];
    switch (call.info->params[i].role) {
      case Role::kNewComm:
        word();
        break;  // MakeComms
      case Role::kNewComms:
        next += call.ArgOf(Role::kNRanks);
        break;
      case Role::kNewRedOp:
      case Role::kOutInt:
      case Role::kOutResult:
        Store<uint32_t>(out, word());
        break;
      case Role::kOutSize:
        Store<uint64_t>(out, word());
        break;
      case Role::kOutI8:
        Store<uint8_t>(out, word());
        break;
      case Role::kOutI16:
        Store<uint16_t>(out, word());
        break;
      case Role::kOutPtr: {
        // An address of another process: as good a name for a parameter as any, nothing else.
        const uint64_t recorded_address = word();
        const auto api = static_cast<NcclApi>(call.info->id);
        if (api == NcclApi::ncclParamBind) Store<uint64_t>(out, recorded_address);
        if (api == NcclApi::ncclParamGetAllParameterKeys)
          Store<uint64_t>(out, reinterpret_cast<uint64_t>(KeepTable(take(blob.size()))));
        break;
      }
      case Role::kNewHandle: {
        word();
        auto* handle = new ServedHandle;
        handle->buffer = Pointer(call.ArgOf(Role::kPtr));
        Store<uint64_t>(out, reinterpret_cast<uint64_t>(handle));
        break;
      }
      case Role::kNewUniqueId: {
        const std::string_view id = take(NCCL_UNIQUE_ID_BYTES);
        if (out != 0 && id.size() == NCCL_UNIQUE_ID_BYTES)
          std::memcpy(Pointer(out), id.data(), id.size());
        break;
      }
      case Role::kOutString:
        Store<uint64_t>(out, reinterpret_cast<uint64_t>(KeepString(take(blob.size()))));
        break;
      case Role::kOutBytes: {
        // No more than the program has room for, whatever the trace says.
        const std::string_view bytes = take(blob.size()).substr(0, call.ArgOf(Role::kSize));
        if (out != 0) std::memcpy(Pointer(out), bytes.data(), bytes.size());
        break;
      }
      case Role::kSimInfo: {
        // Says itself how long it is.
        uint64_t size = 0;
        if (out != 0) std::memcpy(&size, Pointer(out), sizeof size);
        const std::string_view info = take(blob.size());
        if (out != 0) std::memcpy(Pointer(out), info.data(), std::min<uint64_t>(size, info.size()));
        break;
      }
      default:
        break;
    }
  }
}

namespace {

// A device's memory where the program has one: it hands it to kernels.
void* AllocateForNccl(size_t size) {
  constexpr size_t kPage = 4096;
  const size_t bytes = size == 0 ? kPage : size;
  preload::LookForDevice();
  Turns* turns = Turns::Get();
  do {
    if (void* memory = preload::TheDevice().Allocate(bytes)) return memory;
  } while (turns != nullptr && turns->MakeRoom({bytes, Turns::kOwnDevice, 0, 0}));
  void* memory = nullptr;
  return posix_memalign(&memory, kPage, bytes) == 0 ? memory : nullptr;
}

void FreeForNccl(void* memory) {
  if (!preload::TheDevice().Free(memory)) free(memory);
}

}  // namespace

const RecordedCall* ServeOrdered(Session& session, ThreadState& thread, Call& call) {
  session.progress().CountActivity();
  const ServedComm* called_on = ServedComm::From(call.ArgOf(Role::kComm));
  const RecordedCall* recorded =
      NextOrdered(session, thread, call, called_on == nullptr ? 0 : called_on->number());
  if (recorded == nullptr) {
    call.result = ncclInternalError;
    return nullptr;
  }
  LiveTrace* live = session.live_trace();
  const uint64_t entered =
      live == nullptr
          ? 0
          : live->Enter(call, called_on == nullptr ? 0 : called_on->number(), *recorded);
  if (recorded->api == call.info->id) {
    const std::string differs = CompareArguments(session.plan(), *recorded, call);
    if (!differs.empty()) {
      Divergence divergence = session.divergences().New(DivergenceKind::kArguments);
      Locate(divergence, call, called_on, 0);
      divergence.what = differs;
      session.divergences().Diverge(thread, std::move(divergence), recorded->stack);
    }
  }
  if (!recorded->left) {
    const ServedComm* comm = ServedComm::From(call.ArgOf(Role::kComm));
    Park(session, thread, ShortName(call.info->name), comm == nullptr ? 0 : comm->number(), 0,
         recorded);
  }
  const bool made = recorded->result == ncclSuccess || recorded->result == ncclInProgress;
  if (made) WriteOuts(session, *recorded, call);
  MakeComms(session, thread, *recorded, call);
  session.Find<ServedComms>()->Meet(thread, *recorded);
  const auto api = static_cast<NcclApi>(call.info->id);
  if (api == NcclApi::ncclMemAlloc && made)
    Store<uint64_t>(call.ArgOf(Role::kOutPtr),
                    reinterpret_cast<uint64_t>(AllocateForNccl(call.ArgOf(Role::kSize))));
  if (api == NcclApi::ncclRedOpCreatePreMulSum && made && called_on != nullptr &&
      session.Find<ComputedResults>() != nullptr)
    session.Find<ComputedResults>()->KeepOperator(*called_on, call);
  if (ServedComm* comm = ServedComm::From(call.ArgOf(Role::kComm)); comm != nullptr && made) {
    if (api::CutsShort(api, call.ArgOf(Role::kFlags))) comm->LetGo();
    if (api == NcclApi::ncclCommDestroy || api == NcclApi::ncclCommAbort) {
      if (session.Find<ComputedResults>() != nullptr) session.Find<ComputedResults>()->Leave(*comm);
      comm->LetGo();
      comm->End();
    }
  }
  if (api == NcclApi::ncclMemFree && made) FreeForNccl(Pointer(call.ArgOf(Role::kPtr)));
  call.result = static_cast<uint64_t>(recorded->result);
  if (live != nullptr) live->Leave(entered, recorded->result, *recorded);
  return recorded;
}

namespace {

void ServeRecordedQuery(Session& session, ThreadState& thread, Call& call, uint64_t otherwise) {
  const RecordedCall* recorded = NextOfKind(session, thread, call.info->id);
  const ServedComm* comm = ServedComm::From(call.ArgOf(Role::kComm));
  // Another communicator's answer is none.
  if (recorded == nullptr || !recorded->left ||
      recorded->comm != (comm == nullptr ? 0 : comm->number())) {
    call.result = otherwise;
    return;
  }
  WriteOuts(session, *recorded, call);
  call.result = static_cast<uint64_t>(recorded->result);
}

// An error is there once the operations that came before it are; what was entered and should have a
// result, and has none, is in progress for good.
uint64_t AsyncError(Session& session, const ServedComm& comm) {
  const ReplayPlan& plan = session.plan();
  if (comm.unfinished()) return ncclInProgress;
  const uint64_t ops = comm.operations();
  if (const int64_t error = plan.AsyncErrorAfter(comm.number(), ops); error != 0)
    return static_cast<uint64_t>(error);
  const uint32_t last = plan.FindOperation(comm.number(), ops);
  if (last == kNone) return ncclSuccess;
  const RecordedCall& call = plan.calls()[last];
  const bool came = (call.has_results || !comm.latest_has_output()) && !call.aborted;
  return call.result == ncclInProgress && !came ? ncclInProgress : ncclSuccess;
}

}  // namespace

void ServeQuery(Session& session, ThreadState& thread, Call& call) {
  const auto api = static_cast<NcclApi>(call.info->id);
  const ServedComm* comm = ServedComm::From(call.ArgOf(Role::kComm));
  call.result = ncclSuccess;
  switch (api) {
    case NcclApi::ncclGetVersion:
      if (call.args[0] == 0) {
        call.result = ncclInvalidArgument;
        return;
      }
      Store<int32_t>(call.args[0], session.plan().nccl_version != 0 ? session.plan().nccl_version
                                                                    : NCCL_VERSION_CODE);
      return;
    case NcclApi::ncclGetErrorString:
      call.result = reinterpret_cast<uint64_t>(NcclResultText(static_cast<int>(call.args[0])));
      return;
    case NcclApi::ncclGetLastError: {
      const RecordedCall* recorded = NextOfKind(session, thread, call.info->id);
      call.result = reinterpret_cast<uint64_t>(
          recorded == nullptr ? "" : KeepString(session.plan().Bytes(recorded->out_blob)));
      return;
    }
    case NcclApi::ncclResetDebugInit:
    case NcclApi::ncclParamDumpAll:
      return;
    case NcclApi::ncclCommGetAsyncError:
      session.progress().CountActivity();
      if (comm == nullptr || call.args[1] == 0) {
        call.result = ncclInvalidArgument;
        return;
      }
      Store<uint32_t>(call.args[1], AsyncError(session, *comm));
      return;
    case NcclApi::ncclCommCount:
    case NcclApi::ncclCommUserRank:
    case NcclApi::ncclCommCuDevice: {
      // What is known of the communicator, unless the recorded call had another answer.
      const bool can_answer = comm != nullptr && call.args[1] != 0;
      if (can_answer) {
        const int32_t device = std::max(comm->device(), 0);
        Store<int32_t>(call.args[1], api == NcclApi::ncclCommCount ? comm->nranks()
                                     : api == NcclApi::ncclCommUserRank
                                         ? comm->rank()
                                         : static_cast<uint32_t>(device));
      }
      ServeRecordedQuery(session, thread, call, can_answer ? ncclSuccess : ncclInvalidArgument);
      return;
    }
    case NcclApi::ncclWinGetUserPtr: {
      const auto* window = static_cast<const ServedHandle*>(Pointer(call.ArgOf(Role::kHandle)));
      const bool is_ours = window != nullptr && window->magic == ServedHandle::kMagic;
      if (is_ours)
        Store<uint64_t>(call.ArgOf(Role::kOutPtr), reinterpret_cast<uint64_t>(window->buffer));
      ServeRecordedQuery(session, thread, call, is_ours ? ncclSuccess : ncclInvalidArgument);
      return;
    }
    default:
      ServeRecordedQuery(session, thread, call, ncclInvalidUsage);
      return;
  }
}

}  // namespace deja::replayer
