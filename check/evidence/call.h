// Call: one collective or transfer, as one rank made it.
//
// A value. Numbers of signatures, sites and names are those of the summary that has it.
#ifndef DEJA_CHECK_EVIDENCE_CALL_H_
#define DEJA_CHECK_EVIDENCE_CALL_H_

#include <cstdint>

namespace deja::check {

inline constexpr uint64_t kNoStep = ~uint64_t{0};
inline constexpr uint32_t kNoSite = 0;  // sites[0] is the empty one

enum CallFlag : uint8_t {
  kDone = 1,  // it has returned, or its results are known
  kFailed = 2,
  kNanIn = 4,
  kInfIn = 8,
  kNanOut = 16,
  kInfOut = 32,
  kRepeated = 64,  // launched several times by a graph: no single result
};

// Digests are the first eight bytes, 0: unknown.
struct Call {
  uint32_t signature = 0;
  uint32_t site = kNoSite;
  uint64_t seq = 0;  // as `deja show` numbers it
  uint64_t step = kNoStep;
  uint64_t time_ns = 0;
  uint64_t input = 0;
  uint64_t output = 0;
  uint32_t thread = 0;
  uint32_t names = 0;  // what the program calls its operands: of RankSummary::names; 0: not known
  uint32_t lasted_us = 0;  // until it was done, as the rank saw it
  uint8_t flags = 0;

  [[nodiscard]] bool Is(CallFlag flag) const { return (flags & flag) != 0; }
};

static_assert(sizeof(Call) == 64, "a summary has one for each operation");

struct Transfer : Call {
  int64_t peer = -1;  // rank in the communicator; -1: any
  int64_t tag = 0;
};

}  // namespace deja::check

#endif  // DEJA_CHECK_EVIDENCE_CALL_H_
