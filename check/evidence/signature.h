// Signature: what the ranks of a communicator must agree on in one operation.
//
// Operations of NCCL and of torch.distributed have the same words here: c10d_allreduce and
// ncclAllReduce are both an AllReduce. Values and pure functions; any thread.
#ifndef DEJA_CHECK_EVIDENCE_SIGNATURE_H_
#define DEJA_CHECK_EVIDENCE_SIGNATURE_H_

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "format/wire/messages.h"

namespace deja::check {

enum class Operation : uint8_t {
  kReduce,
  kBroadcast,
  kAllReduce,
  kReduceScatter,
  kAllGather,
  kAllToAll,
  kGather,
  kScatter,
  kBarrier,
  kSend,
  kRecv,
  kRecvAnySource,
};

// "AllReduce"
std::string_view NameOf(Operation operation);

constexpr bool IsTransfer(Operation operation) {
  return operation == Operation::kSend || operation == Operation::kRecv ||
         operation == Operation::kRecvAnySource;
}
// Every rank has the same bytes afterwards.
constexpr bool HasEqualResults(Operation operation) {
  return operation == Operation::kAllReduce || operation == Operation::kBroadcast ||
         operation == Operation::kAllGather;
}
// No rank leaves it before all have entered.
constexpr bool WaitsForAll(Operation operation) {
  return operation == Operation::kAllReduce || operation == Operation::kAllGather ||
         operation == Operation::kReduceScatter || operation == Operation::kAllToAll ||
         operation == Operation::kBarrier;
}

struct Signature {
  static constexpr uint32_t kNoType = ~0u;
  static constexpr uint64_t kAnyCount = ~uint64_t{0};  // ranks may differ in it
  static constexpr int64_t kNone = -1;
  static constexpr int64_t kReductions = 5;  // NCCL's own, from 0 on: sum to avg

  Operation operation = Operation::kBarrier;
  uint32_t api = 0;  // ncclBcast and ncclBroadcast fit each other
  uint32_t dtype = kNoType;
  uint64_t count = kAnyCount;
  int64_t redop = kNone;  // kNone also for operators that the program has made
  int64_t root = kNone;

  friend auto operator<=>(const Signature&, const Signature&) = default;
};

// Null optional: the call is no operation of a communicator that ranks can be compared by.
std::optional<Signature> SignatureOf(const format::CallEnter& enter);

// Whether two ranks may call these at one number of a communicator.
bool Fit(const Signature& a, const Signature& b);

// What does not fit, in the order of importance: "op", "dtype", "count", "redop", "root".
enum class Field : uint8_t { kNothing, kOperation, kType, kCount, kReduction, kRoot };
Field FirstDifference(const Signature& a, const Signature& b);
std::string_view NameOf(Field field);

// "AllReduce float32[25632] sum", "Broadcast int64[1] root 0"
std::string Describe(const Signature& signature);

}  // namespace deja::check

#endif  // DEJA_CHECK_EVIDENCE_SIGNATURE_H_
