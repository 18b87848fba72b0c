// The table of NCCL's functions.
//
// Constants; any thread, signal handlers too.
#ifndef DEJA_API_NCCL_TABLE_H_
#define DEJA_API_NCCL_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "api/roles.h"

namespace deja::api {

// Ids as names: `switch (static_cast<NcclApi>(call.info->id)) { case NcclApi::ncclSend: …`.
enum class NcclApi : uint32_t {
#define DEJA_FN(id, result, name, since, klass, ...) name = kNcclFamily + (id),
#include "api/tables/nccl.def"
#undef DEJA_FN
};

// The newest release whose functions are all here, as NCCL_VERSION_CODE.
inline constexpr int kNewestNccl = 23203;

// Where an ncclCollConfig_t has the program's tag for profilers, in every release that has it.
inline constexpr size_t kProfilerTagOffset = 56;

// All rows, by id.
std::span<const ApiInfo> NcclTable();
// The row with this id or name, or null.
const ApiInfo* FindNccl(uint32_t id);
const ApiInfo* FindNccl(std::string_view name);
inline const ApiInfo& NcclInfo(NcclApi api) {
  return NcclTable()[static_cast<uint32_t>(api) - kNcclFamily];
}

// The call cuts short what is under way on its communicator, whatever threads and streams that is
// on. `flags`: its argument of that role, 0 if it has none.
inline bool CutsShort(NcclApi api, uint64_t flags) {
  constexpr uint64_t kShrinkAbort = 1;  // NCCL_SHRINK_ABORT
  return api == NcclApi::ncclCommAbort || api == NcclApi::ncclCommRevoke ||
         (api == NcclApi::ncclCommShrink && (flags & kShrinkAbort) != 0);
}

}  // namespace deja::api

#endif  // DEJA_API_NCCL_TABLE_H_
