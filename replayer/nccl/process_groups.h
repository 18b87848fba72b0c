// ProcessGroups: PyTorch's process groups and stores, answered from the recording.
//
// Operations are matched by communicator and number, like NCCL's, and their results are in the
// program's tensors as soon as they are issued. Stores are matched by function and key, whichever
// thread asks: how often a program polls a key is a matter of time; when all recorded answers for a
// key have been given the last one stays. One per process, made with the session; any thread.
#ifndef DEJA_REPLAYER_NCCL_PROCESS_GROUPS_H_
#define DEJA_REPLAYER_NCCL_PROCESS_GROUPS_H_

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "preload/calls/group_calls.h"
#include "replayer/core/session.h"

namespace deja::replayer {

class ProcessGroups final : public LateStarter {
 public:
  explicit ProcessGroups(Session& session);

  void Serve(ThreadState& thread, preload::GroupCall& call);
  // The program waits for an operation whose end the recording does not have.
  void WaitForUnknown(ThreadState& thread, const preload::GroupEnd& end);
  void ServeStore(ThreadState& thread, preload::StoreCall& call);
  // A replay from a checkpoint goes on after it.
  void StartLate(const LateStart& start) override;

 private:
  struct Answers {
    std::vector<uint32_t> calls;
    size_t next = 0;
  };

  void ServeIssued(ThreadState& thread, preload::GroupCall& call);
  // The value of a store's call: in the call's record, or a payload where it is long.
  std::string_view ValueOf(const RecordedCall& recorded);

  Session& session_;
  std::map<std::pair<uint32_t, uint64_t>, uint32_t> ends_;  // c10d_work by operation
  std::mutex mutex_;                                        // of the rest
  std::map<std::pair<uint32_t, std::string>, Answers> stores_;
  std::map<uint32_t, std::vector<std::byte>> long_values_;
};

}  // namespace deja::replayer

#endif  // DEJA_REPLAYER_NCCL_PROCESS_GROUPS_H_
