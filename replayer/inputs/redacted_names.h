// RedactedNames: answers of name servers in a replay of a redacted bundle. Questions are recorded
// as hashes, and what the program asks for there is a stand-in, whose hash is another. Each new
// question gets the next answer, in the order of the recording.
//
// One per session; any thread.
#ifndef DEJA_REPLAYER_INPUTS_REDACTED_NAMES_H_
#define DEJA_REPLAYER_INPUTS_REDACTED_NAMES_H_

#include <cstdint>
#include <map>
#include <mutex>
#include <utility>

#include "replayer/core/parts.h"
#include "replayer/plan/replay_plan.h"

namespace deja::replayer {

class RedactedNames {
 public:
  static constexpr SessionPart kPart = SessionPart::kNames;

  // The answer to the question `key` of `api`; null when the recording has no more.
  const RecordedInput* Find(const ReplayPlan& plan, uint32_t api, uint64_t key);

 private:
  std::mutex mutex_;
  std::map<std::pair<uint32_t, uint64_t>, size_t> answers_;  // position among the inputs
  std::map<uint32_t, size_t> next_;                          // by api
};

}  // namespace deja::replayer

#endif  // DEJA_REPLAYER_INPUTS_REDACTED_NAMES_H_
