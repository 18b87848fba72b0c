// What the calls of the NCCL API share: the enter and leave records.
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <ctime>

#include "api/nccl_table.h"
#include "digest/digest.h"
#include "include/compat/nccl.h"
#include "recorder/events/argument_memory.h"
#include "recorder/nccl/nccl_recorder.h"

namespace deja::recorder {
namespace {

using api::NcclApi;
using api::Role;
using preload::Call;

constexpr size_t kUniqueIdBytes = 128;
constexpr size_t kMaxText = 1024;

// Bytes of an array of `count` elements, where a count that makes no sense is 0.
size_t ArrayBytes(uint64_t count, size_t element) {
  return count > 0xffff ? 0 : static_cast<size_t>(count) * element;
}

// A config, of a communicator or of a call, says itself how long it is. What does not look like one
// is not read.
size_t ConfigBytes(uint64_t address) {
  if (address == 0) return 0;
  ncclConfig_t head;
  static_assert(offsetof(ncclConfig_t, blocking) == offsetof(ncclCollConfig_t, ext));
  std::memcpy(&head, Pointer(address), offsetof(ncclConfig_t, blocking));
  bool sane = head.magic == NCCL_API_MAGIC && head.size >= offsetof(ncclConfig_t, blocking) &&
              head.size <= 4096;
  return sane ? head.size : 0;
}

// Pointers in it are the process's own; the program's choice of an algorithm is the call's text.
void AddCollConfig(uint64_t address, Blob& blob, format::CallEnter& enter) {
  ncclCollConfig_t config = NCCL_COLLCONFIG_INITIALIZER;
  const size_t size = std::min(ConfigBytes(address), sizeof config);
  if (size < offsetof(ncclCollConfig_t, launchCompletionEvent)) return;
  std::memcpy(&config, Pointer(address), size);
  if (config.algSelection != nullptr)
    enter.text = {config.algSelection, strnlen(config.algSelection, kMaxText)};
  config.ext = nullptr;
  config.algSelection = nullptr;
  config.launchCompletionEvent = nullptr;
  blob.Add(&config, size);
}

void AddBehind(const Call& call, int arg, Blob& blob, format::CallEnter& enter) {
  uint64_t word = call.args[arg];
  const void* data = Pointer(word);
  if (word == 0) return;
  switch (call.info->params[arg].role) {
    case Role::kUniqueId:
      return blob.Add(data, kUniqueIdBytes);
    case Role::kUniqueIds: {
      int count_arg = call.info->Find(Role::kIdCount);
      uint64_t count = count_arg < 0 ? 1 : call.args[count_arg];
      return blob.Add(data, ArrayBytes(count, kUniqueIdBytes));
    }
    case Role::kConfig:
      enter.text = ConfigName(word);
      return blob.Add(data, ConfigBytes(word));
    case Role::kCollConfig:
      return AddCollConfig(word, blob, enter);
    case Role::kIntArray:
      return blob.Add(data, ArrayBytes(call.ArgOf(Role::kIntCount), sizeof(int)));
    case Role::kDeviceArray:
      return blob.Add(data, ArrayBytes(call.ArgOf(Role::kNRanks), sizeof(int)));
    case Role::kSignalDescs:
      return blob.Add(data, ArrayBytes(call.ArgOf(Role::kIntCount), sizeof(ncclWaitSignalDesc_t)));
    case Role::kScalarPtr:
      if (call.ArgOf(Role::kResidence) == ncclScalarHostImmediate)
        blob.Add(data, digest::ElementSize(static_cast<uint32_t>(call.ArgOf(Role::kDType))));
      return;
    case Role::kString: {
      const char* text = static_cast<const char*>(data);
      enter.text = {text, strnlen(text, kMaxText)};
      return;
    }
    default:
      return;
  }
}

HandleKind KindOfHandle(const Call& call) {
  switch (static_cast<NcclApi>(call.info->id)) {
    case NcclApi::ncclCommRegister:
    case NcclApi::ncclCommDeregister:
      return HandleKind::kRegistration;
    default:
      return HandleKind::kWindow;
  }
}

// The names behind ncclParamGetAllParameterKeys's table, each with its final zero.
void AddKeys(const Call& call, Blob& blob) {
  auto* const* table =
      static_cast<const char* const*>(Pointer(ValueAt<uint64_t>(call.ArgOf(Role::kOutPtr))));
  const auto count = ValueAt<uint32_t>(call.ArgOf(Role::kOutInt));
  for (uint32_t i = 0; table != nullptr && i < count && table[i] != nullptr; ++i)
    blob.Add(table[i], strnlen(table[i], kMaxText) + 1);
}

// Once for each communicator with windows, which may be for collectives alone.
void SayWindows(Recording& rec, const Call& call) {
  Communicator* comm = NcclOf(rec).comms.Find(call.ArgOf(Role::kComm));
  if (comm == nullptr || comm->has_windows.exchange(true)) return;
  char reason[128];
  const int size = std::snprintf(
      reason, sizeof reason,
      "bytes that other ranks may have put into the windows of comm %u by one-sided operations",
      comm->number);
  format::Degraded degraded;
  degraded.reason = {reason, static_cast<size_t>(size)};
  degraded.remark = 1;
  rec.writer.Write(degraded);
}

// Returns if the program survives the signal.
void AwaitEnd(Recording& rec) {
  constexpr timespec kStep{0, 1'000'000};
  constexpr timespec kUntilItIsDead{0, 50'000'000};
  // The thread that records the signal may itself have crashed.
  constexpr int kMostSteps = 3000;
  for (int i = 0; i < kMostSteps && rec.ends.load(std::memory_order_relaxed); ++i)
    syscall(SYS_nanosleep, &kStep, nullptr);
  rec.ends.store(false, std::memory_order_relaxed);
  syscall(SYS_nanosleep, &kUntilItIsDead, nullptr);
}

bool IsQueryWithoutRecord(uint32_t id) {
  switch (static_cast<NcclApi>(id)) {
    case NcclApi::ncclGetErrorString:
    case NcclApi::ncclResetDebugInit:
    case NcclApi::ncclParamDumpAll:
      return true;
    default:
      return false;
  }
}

}  // namespace

std::string_view ConfigName(uint64_t address) {
  if (ConfigBytes(address) < offsetof(ncclConfig_t, commName) + sizeof(const char*)) return {};
  ncclConfig_t head;
  std::memcpy(&head, Pointer(address), offsetof(ncclConfig_t, collnetEnable));
  if (head.version < NCCL_VERSION(2, 27, 0) || head.commName == nullptr) return {};
  return {head.commName, strnlen(head.commName, kMaxText)};
}

void NcclRecorder::OnNcclCall(Call& call) {
  Recording* rec = recorder_.Active();
  if (rec == nullptr) return call.invoke(call);
  if (rec->ends.load(std::memory_order_relaxed)) AwaitEnd(*rec);
  if (call.info->id == static_cast<uint32_t>(NcclApi::ncclCommGetAsyncError))
    return RecordAsyncError(*rec, call);
  if (IsQueryWithoutRecord(call.info->id)) return call.invoke(call);
  switch (call.info->klass) {
    case api::ApiClass::kCollective:
    case api::ApiClass::kP2p:
      return RecordOperation(*rec, call);
    case api::ApiClass::kGroup:
      return RecordGroup(*rec, call);
    case api::ApiClass::kLifecycle:
      return RecordLifecycle(*rec, call);
    default:
      return RecordPlain(*rec, call);
  }
}

uint32_t NcclRecorder::HandleWire(Recording& rec, HandleKind kind, uint64_t value) {
  bool is_new = false;
  uint32_t wire = NcclOf(rec).handles.Wire(kind, value, is_new);
  if (is_new) rec.writer.Write(format::HandleDefined{static_cast<uint32_t>(kind), wire, value});
  return wire;
}

void NcclRecorder::FillEnter(Recording& rec, const Call& call, format::CallEnter& enter,
                             Blob& blob) {
  enter.api = call.info->id;
  enter.group_depth = preload::Self().group_depth;
  if (call.info->klass != api::ApiClass::kQuery) enter.stack = CaptureStack(rec.writer);
  for (uint32_t i = 0; i < call.info->param_count; ++i) {
    uint64_t word = call.args[i];
    switch (call.info->params[i].role) {
      case Role::kComm: {
        Communicator* comm = NcclOf(rec).comms.Find(word);
        word = comm != nullptr ? comm->wire() : 0;
        enter.comm = static_cast<uint32_t>(word);
        break;
      }
      case Role::kStream:
        word = HandleWire(rec, HandleKind::kStream, word);
        break;
      case Role::kHandle:
        word = HandleWire(rec, KindOfHandle(call), word);
        break;
      default:
        AddBehind(call, static_cast<int>(i), blob, enter);
    }
    enter.args.push_back(word);
  }
  enter.blob = blob.view();
}

void NcclRecorder::WriteLeave(Recording& rec, const Call& call, uint64_t enter_seq) {
  format::CallLeave leave;
  leave.enter_seq = enter_seq;
  Blob blob;
  if (call.info->returns == api::ReturnKind::kResult)
    leave.result = static_cast<int64_t>(static_cast<int32_t>(call.result));
  bool has_outs = leave.result == ncclSuccess || leave.result == ncclInProgress;
  for (uint32_t i = 0; has_outs && i < call.info->param_count; ++i) {
    uint64_t word = call.args[i];
    switch (call.info->params[i].role) {
      case Role::kNewComm: {
        Communicator* comm = NcclOf(rec).comms.Find(ValueAt<uint64_t>(word));
        leave.outs.push_back(comm != nullptr ? comm->wire() : 0);
        break;
      }
      case Role::kNewComms:
        for (uint64_t k = 0; word != 0 && k < call.ArgOf(Role::kNRanks); ++k) {
          Communicator* comm = NcclOf(rec).comms.Find(ValueAt<uint64_t>(word + k * sizeof(void*)));
          leave.outs.push_back(comm != nullptr ? comm->wire() : 0);
        }
        break;
      case Role::kNewRedOp:
      case Role::kOutInt:
      case Role::kOutResult:
        leave.outs.push_back(ValueAt<uint32_t>(word));
        break;
      case Role::kOutPtr:
      case Role::kOutSize:
        leave.outs.push_back(ValueAt<uint64_t>(word));
        break;
      case Role::kOutI8:
        leave.outs.push_back(ValueAt<uint8_t>(word));
        break;
      case Role::kOutI16:
        leave.outs.push_back(ValueAt<uint16_t>(word));
        break;
      case Role::kNewHandle: {
        bool is_new = false;  // its creation is this very call
        leave.outs.push_back(
            NcclOf(rec).handles.Wire(KindOfHandle(call), ValueAt<uint64_t>(word), is_new));
        break;
      }
      case Role::kNewUniqueId:
        blob.Add(Pointer(word), kUniqueIdBytes);
        break;
      case Role::kOutString: {
        auto* text = static_cast<const char*>(Pointer(ValueAt<uint64_t>(word)));
        if (text != nullptr) blob.Add(text, strnlen(text, kMaxText));
        break;
      }
      case Role::kOutBytes:
        blob.Add(Pointer(word), ArrayBytes(std::min(ValueAt<uint32_t>(call.ArgOf(Role::kOutInt)),
                                                    call.ArgOf(Role::kSize)),
                                           1));
        break;
      case Role::kSimInfo:
        if (word != 0) blob.Add(Pointer(word), ArrayBytes(ValueAt<uint64_t>(word), 1));
        break;
      default:
        break;
    }
  }
  // Its text is in programs' messages, and only the library knows it.
  if (call.info->id == static_cast<uint32_t>(NcclApi::ncclGetLastError) && call.result != 0) {
    auto* text = static_cast<const char*>(Pointer(call.result));
    blob.Add(text, strnlen(text, kMaxText));
  }
  if (has_outs && call.info->id == static_cast<uint32_t>(NcclApi::ncclParamGetAllParameterKeys))
    AddKeys(call, blob);
  leave.blob = blob.view();
  rec.writer.Write(leave);
}

uint64_t NcclRecorder::WritePlainEnter(Recording& rec, const Call& call) {
  ErrnoKeeper keep;
  format::CallEnter enter;
  Blob blob;
  FillEnter(rec, call, enter, blob);
  return rec.writer.Write(enter);
}

void NcclRecorder::RecordPlain(Recording& rec, Call& call) {
  const uint64_t enter_seq = WritePlainEnter(rec, call);
  call.invoke(call);
  ErrnoKeeper keep;
  WriteLeave(rec, call, enter_seq);
  if (call.result != ncclSuccess) return;
  if (static_cast<NcclApi>(call.info->id) == NcclApi::ncclCommWindowRegister) SayWindows(rec, call);
  if (int handle = call.info->Find(Role::kHandle);
      handle >= 0 && call.info->klass == api::ApiClass::kRegistration)
    NcclOf(rec).handles.Forget(KindOfHandle(call), call.args[handle]);
}

}  // namespace deja::recorder
