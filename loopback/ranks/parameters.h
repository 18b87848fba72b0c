// The NCCL_* variables that mean something here, as ncclParam* reports them. Read from the
// environment each time. Any thread.
#ifndef DEJA_LOOPBACK_RANKS_PARAMETERS_H_
#define DEJA_LOOPBACK_RANKS_PARAMETERS_H_

#include <cstdint>
#include <span>

namespace deja::loopback {

struct Parameter {
  const char* key;
  bool is_integer;
  int64_t otherwise;     // of an integer that is not set
  const char* fallback;  // of a string that is not set

  [[nodiscard]] int64_t Integer() const;
  [[nodiscard]] const char* String() const;
};

extern const Parameter kAlgorithm;
extern const Parameter kProtocol;
extern const Parameter kStrict;  // 1: ranks whose calls differ get an error
extern const Parameter kCommId;
extern const Parameter kDebug;
extern const Parameter kSocketRetries;
extern const Parameter kSocketRetryMilliseconds;

// Of what says how collectives are carried out: ranks must agree in it.
uint64_t ProtocolHash();

std::span<const Parameter* const> AllParameters();
// Null when there is none of that name.
const Parameter* FindParameter(const char* key);

}  // namespace deja::loopback

#endif  // DEJA_LOOPBACK_RANKS_PARAMETERS_H_
