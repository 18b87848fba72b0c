// Calls that make and end communicators.
#include <unistd.h>

#include <cstring>

#include "api/nccl_table.h"
#include "include/compat/nccl.h"
#include "preload/cuda/device.h"
#include "preload/symbols/real_symbols.h"
#include "recorder/nccl/nccl_recorder.h"

namespace deja::recorder {
namespace {

using api::NcclApi;
using api::Role;
using preload::Call;

OpList TakePending(Communicator& comm) {
  Hold hold(comm.pending_lock);
  return comm.pending.Take();
}

uint64_t HandleAt(uint64_t address) {
  uint64_t handle = 0;
  if (address != 0) std::memcpy(&handle, reinterpret_cast<const void*>(address), sizeof handle);
  return handle;
}

int IntArg(const Call& call, Role role) {
  return static_cast<int>(call.ArgOf(role));
}

// Calls of which the communicator does not survive success.
bool EndsCommunicator(NcclApi api) {
  return api == NcclApi::ncclCommDestroy || api == NcclApi::ncclCommAbort;
}

bool CutsShort(const Call& call) {
  return api::CutsShort(static_cast<NcclApi>(call.info->id), call.ArgOf(Role::kFlags));
}

bool MakesCommunicators(const Call& call) {
  return call.info->Find(Role::kNewComm) >= 0 || call.info->Find(Role::kNewComms) >= 0;
}

// Rank (`name` ncclCommUserRank) or size (ncclCommCount) as the library itself knows it; -1 while
// it does not.
int Ask(const char* name, uint64_t handle) {
  auto ask = reinterpret_cast<int (*)(uint64_t, int*)>(preload::RealNccl(name));
  int value = -1;
  return ask != nullptr && ask(handle, &value) == ncclSuccess ? value : -1;
}

std::span<const std::byte> IdsOf(const Call& call) {
  int arg = call.info->Find(Role::kUniqueId);
  size_t count = 1;
  if (arg < 0) {
    arg = call.info->Find(Role::kUniqueIds);
    if (call.info->Find(Role::kIdCount) >= 0) count = call.ArgOf(Role::kIdCount);
  }
  if (arg < 0 || call.args[arg] == 0 || count > 0xffff) return {};
  return {reinterpret_cast<const std::byte*>(call.args[arg]), count * NCCL_UNIQUE_ID_BYTES};
}

// For a communicator that grows from `parent`: the hash that newcomers derive, which have nothing
// but the unique id. One of the old ranks has made that id, and may pass it or leave it to NCCL.
uint64_t JoinedAs(Communicator& parent, std::span<const std::byte> ids, uint64_t result) {
  if (result != ncclSuccess && result != ncclInProgress) return 0;
  const uint64_t made = parent.grow_id.exchange(0, std::memory_order_relaxed);
  return ids.empty() ? made : HashOfIds(ids);
}

void NoteGrowId(Communicator* comm, const Call& call) {
  if (static_cast<NcclApi>(call.info->id) != NcclApi::ncclCommGetUniqueId || comm == nullptr ||
      call.result != ncclSuccess)
    return;
  const auto* id = reinterpret_cast<const std::byte*>(call.ArgOf(Role::kNewUniqueId));
  comm->grow_id.store(HashOfIds({id, NCCL_UNIQUE_ID_BYTES}), std::memory_order_relaxed);
}

}  // namespace

// Before the call that cuts short what is under way on `comm`. Results that have come by now are
// taken. What comes later is what the abort has left in the buffers, and no result.
void NcclRecorder::GiveUp(Recording& rec, const Call& call, Communicator& comm) {
  constexpr uint32_t kPatienceMs = 1000;  // of hashing and keeping; no stream is waited for
  preload::TheDevice().TakeWhatCame(kPatienceMs);
  OpList pending = TakePending(comm);
  format::AsyncError given_up;
  given_up.comm = comm.wire();
  given_up.given_up_by = call.info->id + 1;
  given_up.under_way = comm.under_way.load(std::memory_order_relaxed) + pending.size();
  rec.writer.Write(given_up);
  const bool goes_on = static_cast<NcclApi>(call.info->id) == NcclApi::ncclCommShrink;
  comm.given_up_to = goes_on ? comm.last_seq.load() : UINT64_MAX;
  WriteAborted(rec, pending);
}

void NcclRecorder::RecordLifecycle(Recording& rec, Call& call) {
  auto api = static_cast<NcclApi>(call.info->id);
  uint64_t handle = call.ArgOf(Role::kComm);
  Communicator* comm = NcclOf(rec).comms.Find(handle);
  uint64_t enter_seq = 0;
  format::CallEnter enter;
  Blob blob;
  {
    ErrnoKeeper keep;
    // Before the call: a communicator that never comes about is worth a trace, too.
    if (MakesCommunicators(call)) {
      int rank = call.info->Find(Role::kRank) >= 0 ? IntArg(call, Role::kRank) : 0;
      rec.BecomeRank(rank, IntArg(call, Role::kNRanks));
    }
    NcclOf(rec).choices.WriteLate();
    FillEnter(rec, call, enter, blob);
    enter_seq = rec.writer.Write(enter);
    if (comm != nullptr && CutsShort(call)) GiveUp(rec, call, *comm);
    // Its address may be the next communicator's before this call has returned here.
    if (EndsCommunicator(api)) NcclOf(rec).comms.Remove(handle);
  }
  call.invoke(call);
  ErrnoKeeper keep;
  const bool done = call.result == ncclSuccess || call.result == ncclInProgress;
  if (comm != nullptr && EndsCommunicator(api)) {
    if (!done) NcclOf(rec).comms.Restore(handle, *comm);
    // What came in between.
    else if (CutsShort(call))
      WriteAborted(rec, TakePending(*comm));
    else
      DropAll(rec, TakePending(*comm));
  }
  if (comm != nullptr && CutsShort(call) && !done) comm->given_up_to = 0;
  NoteGrowId(comm, call);
  if (MakesCommunicators(call)) CreatedAfter(rec, call, comm);
  WriteLeave(rec, call, enter_seq);
}

// Writes the CommCreated events of a call that makes communicators. Where the handle comes later
// (in a group, without blocking), keeps what is needed to write them then.
void NcclRecorder::CreatedAfter(Recording& rec, const Call& call, Communicator* parent) {
  PendingComm made;
  made.nranks = IntArg(call, Role::kNRanks);
  made.rank = call.info->Find(Role::kRank) >= 0 ? IntArg(call, Role::kRank) : -1;
  std::span<const std::byte> ids = IdsOf(call);
  if (parent != nullptr) {
    made.parent = parent->wire();
    uint32_t child = parent->child_calls.fetch_add(1, std::memory_order_relaxed);
    int64_t color = static_cast<int32_t>(call.ArgOf(Role::kColor));
    made.hash = HashOfChild(parent->hash, call.info->id, child, color);
    if (static_cast<NcclApi>(call.info->id) == NcclApi::ncclCommGrow)
      made.joined_as = JoinedAs(*parent, ids, call.result);
  } else {
    made.hash = HashOfIds(ids);
  }
  if (call.result != ncclSuccess && call.result != ncclInProgress) return;
  std::string_view name = ConfigName(call.ArgOf(Role::kConfig)).substr(0, sizeof made.name - 1);
  if (!name.empty()) name.copy(made.name, name.size());

  if (int all = call.info->Find(Role::kNewComms); all >= 0) {
    // One process holds all ranks; no other can mean the same communicator.
    static std::atomic<uint32_t> calls{0};
    uint64_t hash = HashOfChild(static_cast<uint64_t>(getpid()), call.info->id, calls++, 0);
    for (int i = 0; call.args[all] != 0 && i < made.nranks; ++i) {
      PendingComm one = made;
      one.out = call.args[all] + static_cast<uint64_t>(i) * sizeof(ncclComm_t);
      one.rank = i;
      one.hash = hash;
      Created(rec, one);
    }
    return;
  }
  made.out = call.ArgOf(Role::kNewComm);
  if (Created(rec, made)) return;
  made.handle = HandleAt(made.out);
  NcclThread* state = PartOf<NcclThread>(preload::Self());
  bool may_come = preload::Self().group_depth > 0 || call.result == ncclInProgress;
  if (may_come && state != nullptr && state->pending_comm_count < NcclThread::kMaxPendingComms)
    state->pending_comms[state->pending_comm_count++] = made;
}

// Writes CommCreated if the program's handle is there and says which one it is.
bool NcclRecorder::Created(Recording& rec, const PendingComm& made) {
  uint64_t handle = HandleAt(made.out);
  if (handle == 0) return false;
  int rank = made.rank >= 0 ? made.rank : Ask("ncclCommUserRank", handle);
  int nranks = made.rank >= 0 && made.nranks > 0 ? made.nranks : Ask("ncclCommCount", handle);
  if (rank < 0 || nranks < 0) return false;
  Communicator* comm = NcclOf(rec).comms.Add(handle, made.hash, rank, nranks);
  if (comm == nullptr) return true;
  // A program that can make a communicator on a device has loaded the driver.
  preload::LookForDevice();
  // Not later: while its collectives run, the driver might wait for them.
  if (rec.config.level != Level::kOrder) preload::TheDevice().PrepareDigests();
  format::CommCreated created;
  created.comm = comm->wire();
  created.hash = comm->hash;
  created.rank = static_cast<uint32_t>(rank);
  created.nranks = static_cast<uint32_t>(nranks);
  created.parent = made.parent;
  created.name = made.name;
  created.joined_as = made.joined_as;
  created.device = -1;
  rec.writer.Write(created);
  NcclOf(rec).choices.OnCommunicator();
  return true;
}

// Writes the events of communicators that are complete: children of `parent`, or the one with
// `handle`. At the end of a group both are 0: all that are waited for. Otherwise a communicator has
// said that it is done.
void NcclRecorder::ResolvePending(Recording& rec, NcclThread& state, uint32_t parent,
                                  uint64_t handle) {
  bool all = parent == 0 && handle == 0;
  uint32_t left = 0;
  for (uint32_t i = 0; i < state.pending_comm_count; ++i) {
    PendingComm& made = state.pending_comms[i];
    bool is_child = parent != 0 && made.parent == parent;
    bool is_itself = handle != 0 && made.handle == handle;
    if (all || is_child || is_itself) {
      if (Created(rec, made)) continue;
      made.handle = HandleAt(made.out);
      if (made.handle == 0) continue;  // this rank is not in it
    }
    state.pending_comms[left++] = made;
  }
  state.pending_comm_count = left;
}

}  // namespace deja::recorder
