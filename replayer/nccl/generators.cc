#include "replayer/nccl/generators.h"

#include "api/curand_table.h"
#include "digest/digest.h"
#include "include/compat/curand.h"
#include "preload/cuda/device.h"
#include "preload/symbols/curand_library.h"
#include "replayer/core/ending.h"
#include "replayer/core/ordered.h"
#include "replayer/nccl/captured_calls.h"
#include "replayer/nccl/nccl_serve.h"
#include "replayer/nccl/operation_bytes.h"
#include "replayer/nccl/served_comms.h"

namespace deja::replayer {

using api::CurandApi;
using api::Role;
using preload::Call;

namespace {

std::string StatusText(uint64_t status) {
  const char* name = api::CurandResultName(static_cast<int64_t>(status));
  const std::string number = std::to_string(status);
  return name == nullptr ? number : std::string(name) + " (" + number + ")";
}

// The trace has the bytes of all that the operation produced, at each launch if it was captured.
bool HasBytes(Session& session, uint32_t index) {
  for (uint64_t launch = 0;; ++launch) {
    const auto produced = session.plan().ProducedAt(index, launch);
    if (!produced) return true;
    if (!session.payloads().SizeOf(produced->hash)) return false;
  }
}

bool HasAllBytes(Session& session, uint32_t comm) {
  const uint64_t last = session.plan().LastOperation(comm);
  for (uint64_t seq = 1; seq <= last; ++seq) {
    const uint32_t index = session.plan().FindOperation(comm, seq);
    if (index != kNone && !HasBytes(session, index)) return false;
  }
  return true;
}

// Makes the call for the library's own generator. What it answers is not the program's business,
// but after an error it has nothing to say any more.
void MakeReal(LiveGenerator& generator, const Call& call, uint64_t word, int arg) {
  if (!generator.failure.empty()) return;
  Call real = call;
  real.args[arg] = word;
  real.invoke(real);
  if (real.result == CURAND_STATUS_SUCCESS) return;
  generator.failure = preload::RealCurand(call.info->name) == nullptr
                          ? "no cuRAND is loaded that could compute it"
                          : "cuRAND's " + std::string(call.info->name) + " answers " +
                                StatusText(real.result) + " here";
}

void MakeGenerator(Session& session, const Call& call) {
  const int out = call.info->Find(Role::kNewComm);
  ServedComm* comm = ServedComm::From(*call.Arg<const uint64_t*>(out));
  if (comm == nullptr || HasAllBytes(session, comm->number())) return;
  auto* generator = new LiveGenerator;
  generator->made_late = session.started_late();
  MakeReal(*generator, call, reinterpret_cast<uint64_t>(&generator->handle), out);
  comm->SetGenerator(generator);
}

void ServeChange(Session& session, ThreadState& thread, Call& call) {
  ServedComm* comm = ServedComm::From(call.ArgOf(Role::kComm));
  const RecordedCall* recorded = ServeOrdered(session, thread, call);
  if (recorded == nullptr) call.result = CURAND_STATUS_INTERNAL_ERROR;
  if (recorded == nullptr || recorded->result != CURAND_STATUS_SUCCESS) return;
  if (call.ArgOf(Role::kNewComm) != 0) return MakeGenerator(session, call);
  if (comm == nullptr) return;
  const auto api = static_cast<CurandApi>(call.info->id);
  if (LiveGenerator* generator = comm->generator())
    MakeReal(*generator, call, generator->handle, call.info->Find(Role::kComm));
  if (api == CurandApi::curandSetStream) comm->SetStream(call.ArgOf(Role::kStream));
  if (api == CurandApi::curandDestroyGenerator) comm->End();
}

// Facts about the library, asked for in the recorded order. What the recording does not have the
// library says itself.
void ServeFact(Session& session, ThreadState& thread, Call& call) {
  const RecordedCall* recorded = NextOfKind(session, thread, call.info->id);
  if (recorded == nullptr || !recorded->left ||
      !CompareArguments(session.plan(), *recorded, call).empty())
    return call.invoke(call);
  WriteOuts(session, *recorded, call);
  call.result = static_cast<uint64_t>(recorded->result);
}

void CompareComputed(Session& session, ThreadState& thread, const LiveOperation& operation) {
  const preload::BufferUse& output = operation.output;
  const auto produced = session.plan().ProducedAt(operation.index, 0);
  if (!produced || produced->hash.IsZero()) return;
  if (operation.captured) return CompareAtLaunches(session, thread, operation, true);
  if (preload::TheDevice().KindOf(output.data) == preload::MemoryKind::kHost) {
    CompareResult(session, thread, operation, 0,
                  {static_cast<const std::byte*>(output.data), output.bytes});
    return;
  }
  // Waited for, so that a divergence is found at its operation and not after it.
  const auto digest =
      preload::DigestAndWait(output.data, output.bytes, output.dtype, operation.stream);
  if (!digest) return;
  if (digest->hash == produced->hash) return session.divergences().CountCompared(true);
  if (const auto bytes = preload::ReadAndWait(output.data, output.bytes, operation.stream))
    CompareResult(session, thread, operation, 0, *bytes);
}

}  // namespace

bool Generate(Session& session, ThreadState& thread, const LiveOperation& operation) {
  LiveGenerator& generator = *operation.comm->generator();
  const bool has_bytes = HasBytes(session, operation.index);
  const bool is_behind = session.started_late() && !generator.made_late;
  if (!is_behind)
    MakeReal(generator, operation.call, generator.handle, operation.call.info->Find(Role::kComm));
  if (has_bytes) return false;
  const RecordedCall& recorded = session.plan().calls()[operation.index];
  const std::string result =
      "computing " + OperationText(recorded) + ": its result is not in the trace, and ";
  if (is_behind)
    FailReplay(session, thread,
               result +
                   "how far its generator was at the checkpoint is not known; replay from the "
                   "start, or record with --level full",
               recorded.stack);
  if (!generator.failure.empty())
    FailReplay(
        session, thread,
        result + generator.failure +
            "; record with --level full, or replay where cuRAND works as in the recorded run",
        recorded.stack);
  CompareComputed(session, thread, operation);
  return true;
}

void ServeCurand(Session& session, ThreadState& thread, Call& call) {
  switch (call.info->klass) {
    case api::ApiClass::kCollective:
      ServeOperation(session, thread, call);
      return;
    case api::ApiClass::kQuery:
      return ServeFact(session, thread, call);
    default:
      return ServeChange(session, thread, call);
  }
}

}  // namespace deja::replayer
