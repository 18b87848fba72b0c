#include "recorder/nccl/nccl_choices.h"

#include <algorithm>
#include <cstring>

#include "api/nccl_table.h"
#include "recorder/core/recording.h"
#include "recorder/nccl/nccl_profiler_abi.h"
#include "recorder/nccl/nccl_state.h"

namespace deja::recorder {
namespace {

std::atomic<NcclChoices*> g_current{nullptr};
std::atomic<bool> g_found_other{false};

struct OpenCall {
  Recording* recording = nullptr;  // null: the thread is in no call
  PendingOp* op = nullptr;
  OpList* group = nullptr;
};
constinit thread_local OpenCall t_open __attribute__((tls_model("initial-exec")));

// NCCL's name for what a call does: "AllReduce".
std::string_view FunctionOf(const api::ApiInfo& info) {
  if (info.id == static_cast<uint32_t>(api::NcclApi::ncclBcast)) return "Broadcast";
  return std::string_view(info.name).substr(4);
}

bool HasRoot(std::string_view func) {
  return func == "Broadcast" || func == "Reduce";
}

bool Fits(const IssuedCollective& issued, const NcclChoices::Collective& told) {
  if (issued.info == nullptr || FunctionOf(*issued.info) != told.func) return false;
  // All-gathers and broadcasts are of bytes inside NCCL.
  if (told.count != issued.count && told.count != issued.count * issued.element_size) return false;
  return told.send == issued.send && told.recv == issued.recv &&
         (!HasRoot(told.func) || told.root == issued.root);
}

template <size_t kSize>
void CopyText(char (&to)[kSize], const char* from) {
  if (from == nullptr) return;
  const size_t size = strnlen(from, kSize - 1);
  std::memcpy(to, from, size);
  to[size] = 0;
}

}  // namespace

NcclChoices::NcclChoices(Recording& recording) : recording_(recording) {
  g_current.store(this, std::memory_order_release);
}

NcclChoices::Open::Open(Recording& recording, PendingOp* op, OpList* group) {
  t_open = {&recording, op, group};
}

NcclChoices::Open::~Open() {
  t_open = {};
}

// A number, with the topmost bit, which no address has: one for the call, 16 for the communicator,
// 39 for the operation.
void* NcclChoices::Handle(const Operation& operation) {
  const uint64_t api = operation.api - api::kNcclFamily;
  if (operation.comm == 0 || api >> 8 != 0 || operation.comm >> 16 != 0 ||
      operation.comm_seq >> 39 != 0)
    return nullptr;
  return reinterpret_cast<void*>(uint64_t{1} << 63 | api << 55 | uint64_t{operation.comm} << 39 |
                                 operation.comm_seq);
}

bool NcclChoices::OfHandle(const void* handle, Operation& operation) {
  const auto word = reinterpret_cast<uint64_t>(handle);
  if (word >> 63 == 0) return false;
  operation.api = api::kNcclFamily + static_cast<uint32_t>(word >> 55 & 0xff);
  operation.comm = static_cast<uint32_t>(word >> 39 & 0xffff);
  operation.comm_seq = word & ((uint64_t{1} << 39) - 1);
  return true;
}

void NcclChoices::OnInit() {
  if (NcclChoices* choices = g_current.load(std::memory_order_acquire))
    choices->told_.store(true, std::memory_order_relaxed);
}

void* NcclChoices::OnCall() {
  if (t_open.op == nullptr || t_open.op->issued.info == nullptr) return nullptr;
  return Handle({t_open.op->comm, t_open.op->comm_seq, t_open.op->issued.info->id});
}

bool NcclChoices::Match(const Collective& collective, Operation& operation) {
  if (t_open.recording == nullptr) return false;
  PendingOp* found = nullptr;
  bool unique = true;
  const auto look_at = [&](PendingOp* op) {
    if (!Fits(op->issued, collective)) return;
    const Communicator* comm = NcclOf(*t_open.recording).comms.ByWire(op->comm);
    if (comm == nullptr || comm->rank != collective.rank) return;
    // Several on one communicator are alike: the first is taken.
    if (found == nullptr)
      found = op;
    else if (found->comm != op->comm)
      unique = false;
  };
  if (t_open.op != nullptr) look_at(t_open.op);
  if (t_open.group != nullptr)
    for (PendingOp* op = t_open.group->first(); op != nullptr; op = op->next) look_at(op);
  if (found == nullptr || !unique) return false;
  operation = {found->comm, found->comm_seq, found->issued.info->id};
  found->issued.info = nullptr;  // the next one that is alike is another
  return true;
}

void NcclChoices::OnCollective(const Collective& collective) {
  Choice choice;
  if (!OfHandle(collective.parent, choice.operation) && !Match(collective, choice.operation))
    return;
  CopyText(choice.algorithm, collective.algorithm);
  CopyText(choice.protocol, collective.protocol);
  choice.channels = collective.channels;
  choice.warps = collective.warps;
  if (t_open.recording != nullptr) return NcclOf(*t_open.recording).choices.Write(choice);
  if (NcclChoices* choices = g_current.load(std::memory_order_acquire)) choices->Keep(choice);
}

void NcclChoices::Write(const Choice& choice) {
  format::AlgorithmChosen chosen;
  chosen.comm = choice.operation.comm;
  chosen.comm_seq = choice.operation.comm_seq;
  chosen.api = choice.operation.api;
  chosen.algorithm = choice.algorithm;
  chosen.protocol = choice.protocol;
  chosen.channels = choice.channels;
  chosen.warps = choice.warps;
  recording_.writer.Write(chosen);
}

void NcclChoices::Keep(const Choice& choice) {
  const auto name = reinterpret_cast<uint64_t>(Handle(choice.operation));
  Hold hold(lock_);
  uint64_t& seen = seen_[(name ^ name >> 39) % kSeen];
  const uint32_t count = late_count_.load(std::memory_order_relaxed);
  if (seen == name || count == kLate) return;
  seen = name;
  late_[count] = choice;
  late_count_.store(count + 1, std::memory_order_relaxed);
}

void NcclChoices::WriteAllLate() {
  while (true) {
    Choice choice;
    {
      Hold hold(lock_);
      const uint32_t count = late_count_.load(std::memory_order_relaxed);
      if (count == 0) return;
      choice = late_[count - 1];
      late_count_.store(count - 1, std::memory_order_relaxed);
    }
    Write(choice);
  }
}

void NcclChoices::FoundOther() {
  g_found_other.store(true, std::memory_order_relaxed);
}

void NcclChoices::OnCommunicator() {
  if (!g_found_other.load(std::memory_order_relaxed) || said_other_.exchange(true)) return;
  format::Degraded degraded;
  degraded.reason =
      "NCCL's choice of algorithms: a profiler plugin of the program's own gets them "
      "(NCCL_PROFILER_PLUGIN)";
  degraded.remark = 1;
  recording_.writer.Write(degraded);
}

}  // namespace deja::recorder
