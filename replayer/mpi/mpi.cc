// Calls of the MPI API: matched in the order of their thread, what they send compared, their
// results taken from the recording. The real library is not called.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "digest/digest.h"
#include "replayer/core/ending.h"
#include "replayer/core/ordered.h"
#include "replayer/mpi/mpi_serve.h"
#include "replayer/process/end_process.h"

namespace deja::replayer {

using api::ApiClass;
using api::MpiApi;
using api::Role;
using preload::Call;
using preload::MpiBuffer;
using preload::MpiEnter;
using preload::TheMpiAbi;

namespace {

MpiApi ApiOf(const Call& call) {
  return static_cast<MpiApi>(call.info->id);
}

void PutInt(uint64_t address, int value) {
  if (address != 0) std::memcpy(reinterpret_cast<void*>(address), &value, sizeof value);
}

bool IsNumber(Role role) {
  switch (role) {
    case Role::kCount:
    case Role::kRoot:
    case Role::kPeer:
    case Role::kInt:
    case Role::kSize:
    case Role::kColor:
    case Role::kIntCount:
    case Role::kInOutInt:
    case Role::kInOutSize:
      return true;
    default:
      return false;
  }
}

// What the program says differently from the recorded call; empty: nothing.
std::string Differences(const ReplayPlan& plan, const RecordedCall& recorded, const Call& live,
                        const MpiEnter& described) {
  const auto args = plan.Words(recorded.args);
  std::string text;
  auto add = [&text](const std::string& what) { text += (text.empty() ? "" : "; ") + what; };
  for (uint32_t i = 0; i < live.info->param_count && i < args.size(); ++i) {
    const api::ParamInfo& param = live.info->params[i];
    if (args[i] == described.args[i]) continue;
    if (api::IsMpiHandle(param.role))
      add(std::string(param.name) + " is " + api::NameOfMpiHandle(described.args[i]).text +
          ", recorded " + api::NameOfMpiHandle(args[i]).text);
    else if (IsNumber(param.role))
      add(std::string(param.name) + " is " +
          std::to_string(static_cast<int64_t>(described.args[i])) + ", recorded " +
          std::to_string(static_cast<int64_t>(args[i])));
  }
  const std::string_view recorded_blob = plan.Bytes(recorded.blob);
  if (recorded_blob == described.blob()) return text;
  for (uint32_t i = 0; i < live.info->param_count; ++i) {
    const std::string_view part = described.Of(i);
    if (recorded_blob.substr(std::min<size_t>(described.begin[i], recorded_blob.size()),
                             part.size()) == part)
      continue;
    const bool is_text = live.info->params[i].role == Role::kString;
    add(std::string(live.info->params[i].name) +
        (is_text ? " is another text: \"" + std::string(part) + "\"" : " has other values"));
    return text;
  }
  add("an array or text of another length");
  return text;
}

void DivergeMpi(Session& session, ThreadState& thread, DivergenceKind kind, const Call& call,
                const RecordedCall& recorded, std::string what) {
  Divergence divergence = session.divergences().New(kind);
  divergence.api = call.info->name;
  divergence.what = std::move(what);
  session.divergences().Diverge(thread, std::move(divergence), recorded.stack);
}

void CompareBuffer(Session& session, ThreadState& thread, const Call& call, const MpiBuffer& input,
                   const RecordedCall& recorded, const format::Tensor& tensor) {
  if (tensor.hash.IsZero() || !input.present() || !input.known()) return;
  std::vector<std::byte> room;
  std::span<const std::byte> live = input.contiguous();
  if (live.empty()) {
    room.resize(input.bytes());
    input.Gather(room);
    live = room;
  }
  const Hash128 hash = digest::HashBytes(live);
  const bool equal = hash == tensor.hash;
  session.divergences().CountCompared(equal);
  if (equal) return;
  Divergence divergence = session.divergences().New(DivergenceKind::kInput);
  divergence.api = call.info->name;
  divergence.tensor = input.arg >= 0 ? call.info->params[input.arg].name : "input";
  divergence.dtype = tensor.dtype;
  divergence.count = live.size() / std::max(digest::ElementSize(tensor.dtype), 1u);
  divergence.recorded_hash = tensor.hash;
  divergence.live_hash = hash;
  divergence.recorded_stats = tensor.stats;
  divergence.live_stats = digest::ComputeStats(live, tensor.dtype);
  if (auto bytes = session.payloads().Read(tensor.hash, live.size())) {
    divergence.has_recorded_bytes = true;
    divergence.element = digest::CompareElements(*bytes, live, tensor.dtype);
  }
  session.divergences().Diverge(thread, std::move(divergence), recorded.stack);
}

// What the call sends: its own buffer, or those of the requests that it starts.
void CompareInputs(Session& session, ThreadState& thread, const Call& call,
                   const MpiRequests& requests, const RecordedCall& recorded) {
  const auto tensors = session.plan().Tensors(recorded.inputs);
  if (tensors.empty()) return;
  ServedMpi& mpi = MpiOf(session);
  if (ApiOf(call) != MpiApi::kMPI_Start && ApiOf(call) != MpiApi::kMPI_Startall)
    return CompareBuffer(session, thread, call, preload::MpiInput(call, mpi), recorded, tensors[0]);
  size_t next = 0;
  for (size_t i = 0; i < requests.size() && next < tensors.size(); ++i) {
    const std::optional<Call> made = mpi.FindRequest(requests[i]);
    if (!made) continue;
    const MpiBuffer input = preload::MpiInput(*made, mpi);
    if (input.present()) CompareBuffer(session, thread, *made, input, recorded, tensors[next++]);
  }
}

// What only the program knows, or what is memory of its own.
void ServeLocally(Session& session, Call& call, std::span<const uint64_t> args) {
  ServedMpi& mpi = MpiOf(session);
  const auto api = ApiOf(call);
  switch (api) {
    case MpiApi::kMPI_Init:
    case MpiApi::kMPI_Init_thread:
      mpi.initialized = true;
      return;
    case MpiApi::kMPI_Finalize:
      mpi.finalized = true;
      return;
    case MpiApi::kMPI_Alloc_mem: {
      void* memory = nullptr;
      constexpr size_t kAlignment = 64;
      if (posix_memalign(&memory, kAlignment, std::max<size_t>(call.ArgOf(Role::kSize), 1)) != 0)
        memory = nullptr;
      const auto word = reinterpret_cast<uint64_t>(memory);
      std::memcpy(reinterpret_cast<void*>(call.ArgOf(Role::kOutPtr)), &word, sizeof word);
      return;
    }
    case MpiApi::kMPI_Free_mem:
      free(call.Arg<void*>(0));
      return;
    case MpiApi::kMPI_Buffer_attach:
      mpi.attached_buffer = call.args[0];
      return;
    case MpiApi::kMPI_Buffer_detach: {
      const uint64_t buffer = mpi.attached_buffer.exchange(0);
      std::memcpy(call.Arg<void*>(0), &buffer, sizeof buffer);
      return;
    }
    case MpiApi::kMPI_Comm_set_attr:
    case MpiApi::kMPI_Type_set_attr:
    case MpiApi::kMPI_Attr_put:
      mpi.SetAttribute({args[0], static_cast<int>(call.args[1])}, call.args[2]);
      return;
    default:
      return;
  }
}

// MPI_Abort ends the process.
[[noreturn]] void Abort(Session& session, int code) {
  ReportExit(session, code, preload::ExitHow::kUnderscoreExit);
  if (ftrylockfile(stdout) == 0) {
    fflush_unlocked(stdout);
    funlockfile(stdout);
  }
  EndProcess(code & 0xff);
}

void ServeRecorded(Session& session, ThreadState& thread, Call& call, const MpiEnter& described,
                   const MpiRequests& requests, const RecordedCall& recorded) {
  CompareInputs(session, thread, call, requests, recorded);
  if (ApiOf(call) == MpiApi::kMPI_Abort) Abort(session, static_cast<int>(call.args[1]));
  if (!recorded.left) Park(session, thread, call.info->name, 0, 0, &recorded);
  GiveMpiResults(session, thread, call, requests, recorded.index);
  ServeLocally(session, call, {described.args.begin(), described.args.size()});
  call.result = static_cast<uint64_t>(recorded.result);
}

// Questions that the program can answer by itself. False: it is none of them.
bool ServeByItself(Session& session, Call& call) {
  switch (ApiOf(call)) {
    case MpiApi::kMPI_Initialized:
      PutInt(call.args[0], MpiOf(session).initialized ? 1 : 0);
      break;
    case MpiApi::kMPI_Finalized:
      PutInt(call.args[0], MpiOf(session).finalized ? 1 : 0);
      break;
    case MpiApi::kMPI_Get_address:
    case MpiApi::kMPI_Address:
      if (call.args[1] != 0) std::memcpy(call.Arg<void*>(1), &call.args[0], sizeof call.args[0]);
      break;
    default:
      return false;
  }
  call.result = 0;
  return true;
}

// Whether something has happened. The answer is no, as often as in the recorded run, then as
// recorded, provided that the program has made what came before. What it asks about decides, not
// how often.
void ServePoll(Session& session, ThreadState& thread, Call& call) {
  MpiEnter described;
  preload::DescribeMpiCall(call, MpiOf(session), described);
  const RecordedCall* next = PeekOrdered(session, thread);
  bool yes = next != nullptr && next->api == call.info->id && next->left &&
             next->ordinal <= session.progress().MadeBy(thread.recorded) &&
             Differences(session.plan(), *next, call, described).empty();
  if (yes) {
    const auto args = session.plan().Words(next->args);
    const uint64_t noes = args.size() > call.info->param_count ? args[call.info->param_count] : 0;
    yes = MpiOf(thread).polls >= noes;
  }
  if (!yes) {
    ++MpiOf(thread).polls;
    const int flag = call.info->Find(Role::kOutInts) >= 0 ? call.info->Find(Role::kOutInt) : -1;
    for (uint32_t i = 0; i < call.info->param_count; ++i) {
      const bool is_flag = std::strcmp(call.info->params[i].name, "flag") == 0;
      if (is_flag || static_cast<int>(i) == flag) PutInt(call.args[i], 0);
      if (std::strcmp(call.info->params[i].name, "index") == 0)
        PutInt(call.args[i], preload::kMpiUndefined);
    }
    call.result = 0;
    return;
  }
  session.progress().CountActivity();
  const MpiRequests requests(call, MpiOf(session));
  const RecordedCall* recorded = NextOrdered(session, thread, call, 0);
  MpiOf(thread).polls = 0;
  if (recorded != nullptr) ServeRecorded(session, thread, call, described, requests, *recorded);
}

}  // namespace

void ServeMpi(Session& session, ThreadState& thread, Call& call) {
  if (ServeByItself(session, call)) return;
  if (call.info->klass == ApiClass::kRefused)
    FailReplay(session, thread,
               std::string(call.info->name) +
                   " cannot be served: a replay does not know its results (MPI's files, windows, "
                   "other jobs and neighbourhoods are recorded as calls only)",
               0);
  if (call.info->klass == ApiClass::kPoll) return ServePoll(session, thread, call);
  session.progress().CountActivity();
  MpiOf(thread).polls = 0;
  MpiEnter described;
  preload::DescribeMpiCall(call, MpiOf(session), described);
  const MpiRequests requests(call, MpiOf(session));
  const RecordedCall* recorded = NextOrdered(session, thread, call, 0);
  if (recorded == nullptr || recorded->api != call.info->id) {
    call.result = static_cast<uint64_t>(TheMpiAbi().error_other);
    return;
  }
  const std::string differs = Differences(session.plan(), *recorded, call, described);
  if (!differs.empty())
    DivergeMpi(session, thread, DivergenceKind::kArguments, call, *recorded, differs);
  ServeRecorded(session, thread, call, described, requests, *recorded);
}

void ServeMpiClock(Session& session, ThreadState& thread, preload::InputCall& call) {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  const double live = static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
  const ReplayPlan& plan = session.plan();
  double value = MpiOf(thread).clock + (live - MpiOf(thread).clock_live);
  const std::vector<uint32_t>* recorded = nullptr;
  if (thread.recorded != kNone) {
    const auto& by_key = plan.threads()[thread.recorded].by_key;
    if (auto it = by_key.find({call.api, 0}); it != by_key.end()) recorded = &it->second;
  }
  uint32_t& next = thread.next_by_key[{call.api, 0}];
  const bool is_tick = call.api == static_cast<uint32_t>(MpiApi::kMPI_Wtick);
  if (recorded != nullptr && (next < recorded->size() || is_tick)) {
    const uint32_t at = std::min<uint32_t>(next, static_cast<uint32_t>(recorded->size() - 1));
    const std::string_view data = plan.Bytes(plan.inputs()[(*recorded)[at]].data);
    if (data.size() == sizeof value) std::memcpy(&value, data.data(), sizeof value);
    ++next;
    if (!is_tick) {
      MpiOf(thread).clock = value;
      MpiOf(thread).clock_live = live;
    }
  } else if (MpiOf(thread).clock_live == 0) {
    value = live;
  }
  std::memcpy(call.out.data(), &value, std::min(sizeof value, call.out.size()));
  call.produced = sizeof value;
}

void RefuseMpi(Session& session, ThreadState& thread, const char* name, const char* because) {
  FailReplay(session, thread,
             std::string(name) + " cannot be served: it is not recorded (" + because + ")", 0);
}

}  // namespace deja::replayer
