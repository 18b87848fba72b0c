// The bytes of an operation in a replay: what goes in is compared, and why what came out cannot be
// served is said. For operations that run when they are called and for those that graphs launch.
//
// Any thread, the driver's too; under the guard.
#ifndef DEJA_REPLAYER_NCCL_OPERATION_BYTES_H_
#define DEJA_REPLAYER_NCCL_OPERATION_BYTES_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "replayer/core/session.h"
#include "replayer/nccl/nccl_thread.h"

namespace deja::replayer {

// "AllReduce #412 of comm 0"
std::string OperationText(const RecordedCall& call);
// Fills in which operation a divergence is at.
void Locate(Divergence& divergence, const preload::Call& call, const ServedComm* comm,
            uint64_t seq);

// And at which launch of the graph that it is captured into, from 0.
void SetLaunch(Divergence& divergence, uint64_t launch);

// Compares the bytes that launch number `launch` (0 if nothing is captured) is about to read.
// 0: nothing to compare, 1 equal, 2 different.
uint32_t CompareBytes(Session& session, ThreadState& thread, const LiveOperation& operation,
                      uint64_t launch, std::span<const std::byte> live);

// The same for what the program's own library has computed instead of the recording.
uint32_t CompareResult(Session& session, ThreadState& thread, const LiveOperation& operation,
                       uint64_t launch, std::span<const std::byte> live);

// Ends the replay: `recorded` cannot be served, because of `why`.
[[noreturn]] void FailResult(Session& session, ThreadState& thread, const LiveOperation& operation,
                             uint64_t launch, const format::Tensor& recorded, const Error& why);

}  // namespace deja::replayer

#endif  // DEJA_REPLAYER_NCCL_OPERATION_BYTES_H_
