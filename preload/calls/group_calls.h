// GroupCalls: what an engine does with process groups and stores of PyTorch.
//
// Any thread, also the library's own, with the guard held. The rules of engine.h hold.
#ifndef DEJA_PRELOAD_CALLS_GROUP_CALLS_H_
#define DEJA_PRELOAD_CALLS_GROUP_CALLS_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "preload/calls/call.h"

namespace deja::preload {

// What the engine does with process groups; the numbers are deja_impl_mode's.
enum class GroupMode : uint8_t { kOff = 0, kRecording = 1, kReplaying = 2 };

// How an operation of a process group ended, as far as a recording knows.
// kFailed: Work.wait raises; kRaised: the call itself did.
enum class GroupState : uint8_t { kUnknown = 0, kDone = 1, kFailed = 2, kRaised = 3 };

// An operation of a process group (c10d.def). What is there when `invoke` returns is its issue; its
// end comes with OnGroupDone.
struct GroupCall : Call {
  uint64_t identity = 0;   // of the group that is made: the same number in all its ranks
  uint64_t operation = 0;  // out: its number in the group, from 1; 0: it has none
  bool served = false;     // out: `invoke` was not called
  GroupState state = GroupState::kUnknown;  // out, served
  int src = -1;                             // out, served
  std::string_view error;                   // what it raised, or, served, raises; stays valid
};

// The end of an operation of a process group.
struct GroupEnd {
  uint64_t group = 0;
  uint64_t operation = 0;
  uint32_t dtype = 0;
  std::span<const std::byte> output;
  int src = -1;  // of whom a recv_anysource has received
  bool failed = false;
  std::string_view error;
};

// The source of an answer: the real function; the recording; or none, because the recording does
// not have the call.
enum class AnswerFrom : uint8_t { kReal, kServed, kNone };

// A call of a store of c10d's. `result` is 1 if it raised `value`.
struct StoreCall : Call {
  std::string_view key;
  std::string_view value;  // out
  bool of_rank = false;    // made by init_process_group
  AnswerFrom answer = AnswerFrom::kReal;
};

class GroupCalls {
 public:
  [[nodiscard]] virtual GroupMode ModeOfGroups() const { return GroupMode::kOff; }
  virtual void OnGroupCall(GroupCall& call) { call.invoke(call); }
  virtual void OnGroupDone(const GroupEnd& /*end*/) {}
  virtual void OnStoreCall(StoreCall& call) { call.invoke(call); }

 protected:
  ~GroupCalls() = default;
};

}  // namespace deja::preload

#endif  // DEJA_PRELOAD_CALLS_GROUP_CALLS_H_
