// Fold: the replayed ranks of a job compute their collectives among themselves, where the recording
// has no bytes to serve.
//
// The loopback library (loopback/README.md) does the work; it is loaded beside this one, not in the
// program's place of NCCL. For each communicator whose ranks are all replayed at this time there is
// one of the library's. Its ranks meet in a folder that `deja replay` has made. It holds lists
// (format/scratch/fold_files.h) and the sockets of ranks 0 that wait for the others. Any thread,
// under the guard; what Run gets belongs to the calling thread.
#ifndef DEJA_REPLAYER_FOLD_FOLD_H_
#define DEJA_REPLAYER_FOLD_FOLD_H_

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "api/nccl_table.h"
#include "common/result.h"
#include "preload/calls/call.h"
#include "replayer/nccl/computed_results.h"
#include "replayer/nccl/served_comm.h"

namespace deja::replayer {

class Fold final : public ComputedResults {
 public:
  static Result<std::unique_ptr<Fold>> Open(const std::string& folder);

  [[nodiscard]] bool IsWhole(const ServedComm& comm) const override;
  [[nodiscard]] bool OthersHaveResult(const ServedComm& comm, uint64_t seq) const override;
  Status Meet(std::span<ServedComm* const> comms) override;
  void Leave(ServedComm& comm) override;
  void KeepOperator(const ServedComm& comm, const preload::Call& call) override;
  void Compute(Session& session, ThreadState& thread,
               std::span<const LiveOperation* const> group) override;

  // An operator that the program has made: what inputs are multiplied by.
  struct Operator {
    uint32_t dtype = 0;
    std::vector<std::byte> scalar;  // empty: it is read from `address` when it is used
    uint64_t address = 0;
  };
  [[nodiscard]] std::optional<Operator> FindOperator(const ServedComm& comm, uint64_t op) const;

  // One call of a group. Its communicator is the library's, its buffers are in host memory.
  struct Operation {
    uint32_t api = 0;
    std::array<uint64_t, api::kMaxArgs> args{};
  };
  // Makes all calls in one group and waits for the results. An error: another rank is gone, or the
  // call cannot be computed.
  Status Run(std::span<const Operation> group);
  // The library's operator for `scalar`, on the library's `comm`, and its end.
  Result<uint64_t> MakeOperator(void* comm, uint32_t dtype, std::span<const std::byte> scalar);
  void DropOperator(void* comm, uint64_t op);

 private:
  Fold() = default;
  uint64_t Call(api::NcclApi api, const uint64_t* args) const;
  Status Check(api::NcclApi api, uint64_t result) const;
  Status Load();
  Status ReadComms(const std::string& folder);

  using CommKey = std::pair<uint64_t, uint32_t>;  // hash and ranks
  std::vector<void*> functions_;                  // by id
  std::map<CommKey, uint64_t> whole_;             // and by which hash its ranks meet
  std::set<std::tuple<uint64_t, uint32_t, uint64_t>> others_results_;  // hash, ranks, number
  mutable std::mutex mutex_;                                           // guards what follows
  // Communicators made so far, by which it is and our rank in it; programs use an id again.
  std::map<std::pair<CommKey, uint32_t>, uint64_t> made_;
  std::map<std::pair<uint32_t, uint64_t>, Operator> operators_;  // by communicator and op
};

}  // namespace deja::replayer

#endif  // DEJA_REPLAYER_FOLD_FOLD_H_
