// What the rows of the API tables (nccl.def, libc.def, mpi.def, c10d.def, curand.def) are made of.
//
// One row describes one function. It gives the exported hook, the slot of the real symbol, the
// event encoder and the replay matcher. It also gives the names in `deja show`, the export map and
// the stub library of the tests. Plain constants; any thread.
#ifndef DEJA_API_ROLES_H_
#define DEJA_API_ROLES_H_

#include <cstddef>
#include <cstdint>

namespace deja::api {

// Api ids are on disk: family in the high bits, append-only, never reused.
inline constexpr uint32_t kNcclFamily = 0x0000;
inline constexpr uint32_t kLibcFamily = 0x0400;
inline constexpr uint32_t kDejaFamily = 0x0800;
inline constexpr uint32_t kMpiFamily = 0x0c00;
inline constexpr uint32_t kC10dFamily = 0x1000;
inline constexpr uint32_t kCurandFamily = 0x1400;

// What a function does, i.e. how an engine treats it.
enum class ApiClass : uint8_t {
  kCollective,    // ordered on a communicator, all ranks take part
  kP2p,           // ordered on a communicator, two ranks
  kGroup,         // ncclGroupStart and the other group calls
  kLifecycle,     // makes, changes or ends communicators
  kRegistration,  // memory and windows
  kRedOp,         // user-made reduction operators
  kOneSided,      // put/signal: recorded as calls; their traffic cannot be seen
  kQuery,         // answers from the library's state
  kInput,         // libc: a nondeterministic input
  kFile,          // libc: names or opens a file
  kProcess,       // libc: threads, signals, exits
  kPoll,          // MPI: asks whether something has happened; only a yes is recorded
  kRefused,       // MPI: recorded as a call; a replay cannot answer it
};

// What a parameter is. `N`: the buffer holds count x nranks elements. `Root`: only on the root.
// Which of the buffers a call reads and writes, and how long they are: preload/calls/buffers.h.
enum class Role : uint8_t {
  kIn,
  kInN,
  kInRoot,
  kInNRoot,
  kOut,
  kOutN,
  kOutRoot,
  kOutNRoot,
  kCount,
  kDType,
  kRedOp,
  kNewRedOp,
  kRoot,
  kPeer,
  kScalarPtr,
  kResidence,
  kComm,
  kNewComm,
  kNewComms,
  kStream,
  kConfig,     // ncclConfig_t*, may be null; holds `size` bytes, not sizeof
  kUniqueId,   // by value; the word is the address of the caller's copy
  kUniqueIds,  // array of kIdCount ids (one if the call has no such parameter), may be null
  kNewUniqueId,
  kRank,
  kNRanks,
  kInt,
  kUInt,
  kSize,
  kFlags,
  kIntArray,     // kIntCount ints, may be null
  kDeviceArray,  // kNRanks ints, may be null
  kOutInt,
  kOutResult,
  kOutPtr,
  kOutSize,
  kHandle,
  kNewHandle,
  kPtr,
  kString,
  kOutString,
  kSimInfo,
  kInRootOut,    // read on the root, written on all
  kIntCount,     // number of elements of a kIntArray or kSignalDescs
  kIdCount,      // number of unique ids
  kColor,        // of ncclCommSplit
  kSignalDescs,  // ncclWaitSignalDesc_t[kIntCount]
  kOutI8,        // one byte; kOutInt is four and kOutSize eight
  kOutI16,       // two bytes
  kOutBytes,     // buffer of kSize bytes, of which the kOutInt says how many were written
  // MPI's. Its handles are kComm, kDType and kHandle, made by kNewHandle.
  kInOut,         // read and written
  kOutPacked,     // written from the kInOutInt or kInOutSize before the call to the one after it
  kCounts,        // an element count for each rank
  kDispls,        // where each rank's part begins
  kDTypes,        // a type for each rank
  kHandles,       // kIntCount handles
  kHandleInOut,   // a handle that the call may end
  kHandlesInOut,  // kIntCount of them
  kStatus,        // MPI_Status*, or the value for "no status"
  kStatuses,      // kIntCount of them
  kStatusIn,      // MPI_Status* that is read
  kOutInts,       // kIntCount ints
  kInOutInt,
  kInOutSize,
  kInOutInts,   // kIntCount ints
  kSizeArray,   // kIntCount words of eight bytes
  kIntTriples,  // kIntCount times three ints
  kOutText,     // a buffer for a text that ends with a zero
  // c10d's, whose calls say apart how much they read and write.
  kInCount,   // elements of the kIn buffer
  kOutCount,  // elements of the kOut buffer
  // cuRAND's, whose generators are kComm.
  kReal,        // a floating-point number
  kCollConfig,  // const ncclCollConfig_t*, may be null; holds `size` bytes, not sizeof
};

// Roles of buffers that the call reads, or writes, on at least one rank.
constexpr bool IsInputRole(Role role) {
  return role == Role::kIn || role == Role::kInN || role == Role::kInRoot ||
         role == Role::kInNRoot || role == Role::kInRootOut;
}
constexpr bool IsOutputRole(Role role) {
  return role == Role::kOut || role == Role::kOutN || role == Role::kOutRoot ||
         role == Role::kOutNRoot || role == Role::kInRootOut;
}
constexpr bool IsOnlyRead(Role role) {
  return IsInputRole(role) && !IsOutputRole(role);
}

// Roles of buffers that count on the root alone; elsewhere the parameter means nothing.
constexpr bool OnlyOnRoot(Role role) {
  return role == Role::kInRoot || role == Role::kInNRoot || role == Role::kOutRoot ||
         role == Role::kOutNRoot;
}

// Roles of buffers with `count` elements for each rank.
constexpr bool TimesRanks(Role role) {
  return role == Role::kInN || role == Role::kInNRoot || role == Role::kOutN ||
         role == Role::kOutNRoot;
}

struct ParamInfo {
  Role role = Role::kInt;
  const char* name = nullptr;
  const char* type = nullptr;
};

// Words of Call::args, at most.
inline constexpr size_t kMaxArgs = 16;

enum class ReturnKind : uint8_t { kResult, kString, kVoid };

struct ApiInfo {
  uint32_t id = 0;
  const char* name = nullptr;
  uint32_t since = 0;  // NCCL_VERSION_CODE in which it appeared
  ApiClass klass = ApiClass::kQuery;
  ReturnKind returns = ReturnKind::kResult;
  uint32_t param_count = 0;
  const ParamInfo* params = nullptr;

  // Index of the first parameter with `role`, or -1.
  [[nodiscard]] constexpr int Find(Role role) const {
    for (uint32_t i = 0; i < param_count; ++i)
      if (params[i].role == role) return static_cast<int>(i);
    return -1;
  }
};

}  // namespace deja::api

#endif  // DEJA_API_ROLES_H_
