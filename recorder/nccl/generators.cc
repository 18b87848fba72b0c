// Generators of cuRAND's host API. Each counts as a communicator of one rank, whose operations are
// what it generates. Their outputs come as those of collectives do, in the order of the stream that
// the generator works on.
#include <unistd.h>

#include <cstdio>
#include <ctime>

#include "api/curand_table.h"
#include "include/compat/curand.h"
#include "preload/cuda/device.h"
#include "recorder/nccl/nccl_recorder.h"

namespace deja::recorder {
namespace {

using api::CurandApi;
using api::Role;
using preload::Call;

// No other process makes the same one.
uint64_t HashOfGenerator(const Call& call) {
  static std::atomic<uint32_t> generators{0};
  timespec now = {};
  clock_gettime(CLOCK_MONOTONIC, &now);
  const uint64_t process = static_cast<uint64_t>(getpid()) << 32 ^
                           static_cast<uint64_t>(now.tv_sec) * 1000000000 ^
                           static_cast<uint64_t>(now.tv_nsec);
  return HashOfChild(process, call.info->id, generators++, 0);
}

void WriteCreated(Recording& rec, const Call& call) {
  const auto* made = call.Arg<const uint64_t*>(call.info->Find(Role::kNewComm));
  Communicator* generator = NcclOf(rec).comms.Add(*made, HashOfGenerator(call), 0, 1);
  if (generator == nullptr) return;
  const bool on_host = call.info->id == static_cast<uint32_t>(CurandApi::curandCreateGeneratorHost);
  // A generator of the host's may fill memory that the driver has pinned.
  preload::LookForDevice();
  if (!on_host && rec.config.level != Level::kOrder) preload::TheDevice().PrepareDigests();
  const char* type = api::CurandValueName("curandRngType_t", call.ArgOf(Role::kInt));
  char name[64];
  snprintf(name, sizeof name, "cuRAND %s%s", type == nullptr ? "generator" : type,
           on_host ? " on the host" : "");
  format::CommCreated created;
  created.comm = generator->wire();
  created.hash = generator->hash;
  created.rank = 0;
  created.nranks = 1;
  created.name = name;
  created.device = -1;
  rec.writer.Write(created);
}

}  // namespace

void NcclRecorder::OnCurandCall(Call& call) {
  Recording* rec = recorder_.Active();
  if (rec == nullptr) return call.invoke(call);
  switch (call.info->klass) {
    case api::ApiClass::kCollective:
      return RecordGenerate(*rec, call);
    case api::ApiClass::kLifecycle:
      return RecordGeneratorChange(*rec, call);
    default:
      return RecordPlain(*rec, call);
  }
}

void NcclRecorder::RecordGenerate(Recording& rec, Call& call) {
  Communicator* generator = NcclOf(rec).comms.Find(call.ArgOf(Role::kComm));
  PendingOp op;
  if (generator != nullptr) op.stream = generator->stream.load(std::memory_order_relaxed);
  const uint64_t enter_seq = EnterOperation(rec, call, generator, op);
  call.invoke(call);
  ErrnoKeeper keep;
  if (call.result == CURAND_STATUS_SUCCESS && !op.output.empty()) WriteResults(rec, op);
  WriteLeave(rec, call, enter_seq);
}

void NcclRecorder::RecordGeneratorChange(Recording& rec, Call& call) {
  const auto api = static_cast<CurandApi>(call.info->id);
  const uint64_t handle = call.ArgOf(Role::kComm);
  Communicator* generator = NcclOf(rec).comms.Find(handle);
  const uint64_t enter_seq = WritePlainEnter(rec, call);
  const bool ends = generator != nullptr && api == CurandApi::curandDestroyGenerator;
  // Its address may be the next generator's before this call has returned here.
  if (ends) NcclOf(rec).comms.Remove(handle);
  call.invoke(call);
  ErrnoKeeper keep;
  const bool done = call.result == CURAND_STATUS_SUCCESS;
  if (ends && !done) NcclOf(rec).comms.Restore(handle, *generator);
  if (done && generator != nullptr && api == CurandApi::curandSetStream)
    generator->stream.store(call.ArgOf(Role::kStream), std::memory_order_relaxed);
  if (done && call.ArgOf(Role::kNewComm) != 0) WriteCreated(rec, call);
  WriteLeave(rec, call, enter_seq);
}

}  // namespace deja::recorder
