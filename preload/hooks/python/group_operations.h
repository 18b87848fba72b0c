// Operations of PyTorch's process groups, as builtins.cc hands them over: recorded, or answered
// from the recording. Any thread, those of the process group's library too, without the
// interpreter's lock. What is passed in is read or written before a function returns and not kept;
// what it hands out stays for good.
#ifndef DEJA_PRELOAD_HOOKS_PYTHON_GROUP_OPERATIONS_H_
#define DEJA_PRELOAD_HOOKS_PYTHON_GROUP_OPERATIONS_H_

#include <cstdint>
#include <string_view>

#include "preload/calls/group_calls.h"
#include "preload/engine/engine.h"

namespace deja::preload {

// One tensor's bytes, dense. torch_dense.py makes arrays of them.
struct Piece {
  void* data = nullptr;
  uint64_t bytes = 0;
};

struct Pieces {
  const Piece* all = nullptr;
  uint64_t count = 0;
};

struct GroupOperation {
  std::string_view function;  // a name in c10d.def
  uint64_t group = 0;         // c10d_new_group sets it
  uint32_t dtype = 0;         // ncclDataType_t, or 255: bytes
  Pieces inputs;
  Pieces outputs;
  int32_t op = 0;    // ncclRedOp_t, or -1 less c10d's own number
  int32_t peer = 0;  // root, source or destination; of c10d_new_group the rank in it
  int32_t tag = 0;
  int32_t nranks = 0;          // c10d_new_group
  const char* name = nullptr;  // c10d_new_group: the group's name, ended by a zero
  uint64_t identity = 0;       // c10d_new_group: the same number in all its ranks
  uint32_t python_stack = 0;   // deja_impl_python_stack's; 0: found here
  // Makes the operation. True: it raises `error`, which stays valid until CallGroup returns.
  bool (*real)(void* context, std::string_view& error) = nullptr;
  void* context = nullptr;

  uint64_t operation = 0;  // out: its number in the group, from 1; 0: it has none
  // Out, where it is served: how it ended, who had sent what a recv_anysource received, and what
  // the operation raises.
  GroupState state = GroupState::kUnknown;
  int32_t src = -1;
  std::string_view error;
};

// Has the operation made, or answers from the recording: true, and `real` was not called.
bool CallGroup(GroupOperation& operation);

// An operation has ended, on whatever thread that is noticed. Once for each. In a replay: the
// program waits for one whose state is unknown; does not return, because the recording ends there.
// The outputs are those of the operation; end.output is set here.
void EndGroupOperation(GroupEnd& end, const Pieces& outputs);

// Whether the calling thread is inside `real` of an operation: what it does then is neither
// recorded nor served. A plug-in's backend may be written in Python and use groups and stores of
// its own, which a replay does not make.
bool IsInRealCall();

// The engine, on threads of the process group's library too: their callbacks are the program's.
// Null inside `real`.
Engine* EngineForGroups();

}  // namespace deja::preload

#endif  // DEJA_PRELOAD_HOOKS_PYTHON_GROUP_OPERATIONS_H_
