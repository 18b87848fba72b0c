// The table of MPI's functions.
//
// Constants; any thread, signal handlers too.
#ifndef DEJA_API_MPI_TABLE_H_
#define DEJA_API_MPI_TABLE_H_

#include <cstdint>
#include <span>
#include <string_view>

#include "api/roles.h"

namespace deja::api {

// Ids as names. With a k, because mpi.h makes macros of some names.
enum class MpiApi : uint32_t {
#define DEJA_FN(id, result, name, since, klass, ...) k##name = kMpiFamily + (id),
#include "api/tables/mpi.def"
#undef DEJA_FN
};

// All rows, by id.
std::span<const ApiInfo> MpiTable();
// The row with this id or name ("MPI_Send"), or null.
const ApiInfo* FindMpi(uint32_t id);
const ApiInfo* FindMpi(std::string_view name);
inline const ApiInfo& MpiInfo(MpiApi api) {
  return MpiTable()[static_cast<uint32_t>(api) - kMpiFamily];
}
inline bool IsMpi(uint32_t id) {
  return FindMpi(id) != nullptr;
}
// A parameter with this role is one handle of MPI's.
constexpr bool IsMpiHandle(Role role) {
  return role == Role::kComm || role == Role::kDType || role == Role::kHandle ||
         role == Role::kHandleInOut;
}

// Open MPI's predefined handles are the addresses of these symbols; number - 1 is the index.
struct MpiPredefined {
  const char* symbol;
  const char* name;
  uint32_t dtype;  // ncclDataType_t of a type's elements, or format::kRawBytes
};
// All predefined handles, in the order of their numbers; static.
std::span<const MpiPredefined> MpiPredefinedHandles();

// Numbers of handles in a trace: 0 is null, then come the predefined ones, from kFirstMpiHandle on
// those that calls made. MPICH's predefined ones are their value with kMpichHandle.
inline constexpr uint64_t kFirstMpiHandle = 256;
inline constexpr uint64_t kMpichHandle = 1ull << 32;
// "MPI_COMM_WORLD", "handle 3", "0x44000000".
struct MpiHandleName {
  char text[40];
};
// The name of a handle's number in a trace, also of one that no table has.
MpiHandleName NameOfMpiHandle(uint64_t number);

}  // namespace deja::api

#endif  // DEJA_API_MPI_TABLE_H_
