// RecordedOperations: what one rank did with its process groups, by group and number, and what its
// stores answered.
//
// Holds descriptions, no bytes of tensors: those are read when they are asked for. A value. Main
// thread only.
#ifndef DEJA_CLI_SERVE_RECORDED_OPERATIONS_H_
#define DEJA_CLI_SERVE_RECORDED_OPERATIONS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "format/reader/rank_reader.h"

namespace deja::cli {

// How a recorded operation ended.
enum class OperationState {
  kOpen,  // it never did, as far as the recording goes
  kDone,
  kFailed,  // Work.wait raised
  kRaised,  // the call itself raised
};

struct RecordedOperation {
  uint32_t api = 0;
  uint32_t stack = 0;
  std::vector<uint64_t> args;
  std::optional<format::Tensor> input;
  std::optional<format::Tensor> output;
  OperationState state = OperationState::kOpen;
  int32_t source = -1;  // of a receive from any rank
  std::string error;    // of one that failed or raised: class and text
};

struct RecordedGroup {
  std::string name;
  uint32_t rank = 0;
  uint32_t nranks = 0;
  std::map<uint64_t, RecordedOperation> operations{};  // by number, from 1
};

class RecordedOperations {
 public:
  // Reads all events of the rank.
  explicit RecordedOperations(const format::RankReader& reader);

  // Process groups of PyTorch's, in the order in which the rank made them.
  [[nodiscard]] const std::vector<RecordedGroup>& groups() const { return groups_; }
  // The rank called NCCL itself, below or without process groups.
  [[nodiscard]] bool has_nccl() const { return has_nccl_; }

  // What the rank's stores answered to `function` ("c10d_store_get"), in order, where the key is
  // `key` or ends with "/" and it. Null: nothing.
  [[nodiscard]] const std::vector<std::string>* StoreAnswers(const std::string& function,
                                                             const std::string& key) const;

 private:
  // An enter record: its thread and number.
  using Place = std::pair<uint32_t, uint64_t>;
  struct Pending {
    RecordedOperation* operation = nullptr;
    bool is_end = false;   // a note of how it ended, not its issue
    std::string function;  // of a store, without `operation`
    std::string key;
  };

  void AddEnter(const format::Event& event, const format::CallEnter& enter);
  void AddLeave(const format::Event& event, const format::CallLeave& leave);
  // Null: no process group has that number.
  RecordedOperation* Find(uint32_t comm, uint64_t number);
  void FindGroups(const format::RankReader& reader);

  std::vector<RecordedGroup> groups_;
  std::map<uint32_t, size_t> by_comm_;  // a communicator's number + 1: its place in groups_
  std::map<Place, Pending> pending_;
  std::map<std::pair<std::string, std::string>, std::vector<std::string>> answers_;
  bool has_nccl_ = false;
};

}  // namespace deja::cli

#endif  // DEJA_CLI_SERVE_RECORDED_OPERATIONS_H_
