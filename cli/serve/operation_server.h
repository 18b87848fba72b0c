// OperationServer: gives a program, call by call, what one recorded rank was given by its process
// groups, and says where the program does something else.
//
// The other side is deja.torch.TracePG (python/deja/notebook/). Each message is a line of JSON,
// followed by as many bytes as its field `bytes` says:
//
//   →  {"group": 0, "operation": "c10d_allreduce", "dtype": 7, "input_count": 6410, …, "bytes": N}
//   ←  {"number": 412, "state": "done", "bytes": N}      and "divergence", where it differs
//   →  {"store": "c10d_store_get", "key": "…"}
//   ←  {"value": "…"}                                    in hexadecimal; null: never answered
//
// The n-th call on a group gets the n-th recorded one. Owner: the caller; what it is given must
// outlive it. Main thread only.
#ifndef DEJA_CLI_SERVE_OPERATION_SERVER_H_
#define DEJA_CLI_SERVE_OPERATION_SERVER_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <span>
#include <vector>

#include "cli/events/rank_summary.h"
#include "cli/events/symbolizer.h"
#include "cli/serve/recorded_operations.h"
#include "format/reader/rank_reader.h"

namespace deja::cli {

struct ServedAnswer {
  nlohmann::json words;  // without `bytes`
  std::vector<std::byte> bytes;
};

class OperationServer {
 public:
  OperationServer(const format::RankReader& reader, const RecordedOperations& recorded,
                  const RankSummary& summary)
      : reader_(reader), recorded_(recorded), summary_(summary) {}

  // The first message: the rank and its groups.
  [[nodiscard]] nlohmann::json Greeting() const;

  // `words`: a request; `input`: the bytes after it. A request that makes no sense gets an answer
  // with `error`.
  ServedAnswer Answer(const nlohmann::json& words, std::span<const std::byte> input);

 private:
  ServedAnswer AnswerOperation(const nlohmann::json& words, std::span<const std::byte> input);
  [[nodiscard]] ServedAnswer AnswerStore(const nlohmann::json& words);
  [[nodiscard]] nlohmann::json Difference(const RecordedOperation& operation,
                                          const RecordedGroup& group,
                                          std::span<const std::byte> input) const;
  [[nodiscard]] nlohmann::json StackOf(const RecordedOperation& operation);

  const format::RankReader& reader_;
  const RecordedOperations& recorded_;
  const RankSummary& summary_;
  Symbolizer symbolizer_;
  std::map<size_t, uint64_t> served_;                            // operations by group
  std::map<std::pair<std::string, std::string>, size_t> asked_;  // of stores
};

}  // namespace deja::cli

#endif  // DEJA_CLI_SERVE_OPERATION_SERVER_H_
