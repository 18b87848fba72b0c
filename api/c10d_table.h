// The table of what PyTorch's process groups and stores do (torch.distributed, c10d).
//
// Constants; any thread, signal handlers too.
#ifndef DEJA_API_C10D_TABLE_H_
#define DEJA_API_C10D_TABLE_H_

#include <cstdint>
#include <span>
#include <string_view>

#include "api/roles.h"

namespace deja::api {

// Ids as names.
enum class C10dApi : uint32_t {
#define DEJA_FN(id, result, name, since, klass, ...) name = kC10dFamily + (id),
#include "api/tables/c10d.def"
#undef DEJA_FN
};

// All rows, by id.
std::span<const ApiInfo> C10dTable();
// The row with this id or name ("c10d_allreduce"), or null.
const ApiInfo* FindC10d(uint32_t id);
const ApiInfo* FindC10d(std::string_view name);
// A call of a store: those are the last rows of the table.
inline bool IsC10dStore(uint32_t id) {
  return id >= static_cast<uint32_t>(C10dApi::c10d_store_set) && FindC10d(id) != nullptr;
}
inline const ApiInfo& C10dInfo(C10dApi api) {
  return C10dTable()[static_cast<uint32_t>(api) - kC10dFamily];
}

}  // namespace deja::api

#endif  // DEJA_API_C10D_TABLE_H_
