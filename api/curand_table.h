// The table of the functions of cuRAND's host API.
//
// Constants; any thread, signal handlers too.
#ifndef DEJA_API_CURAND_TABLE_H_
#define DEJA_API_CURAND_TABLE_H_

#include <cstdint>
#include <span>
#include <string_view>

#include "api/roles.h"

namespace deja::api {

// Ids as names.
enum class CurandApi : uint32_t {
#define DEJA_FN(id, result, name, since, klass, ...) name = kCurandFamily + (id),
#include "api/tables/curand.def"
#undef DEJA_FN
};

// All rows, by id.
std::span<const ApiInfo> CurandTable();
// The row with this id or name, or null.
const ApiInfo* FindCurand(uint32_t id);
const ApiInfo* FindCurand(std::string_view name);
inline const ApiInfo& CurandInfo(CurandApi api) {
  return CurandTable()[static_cast<uint32_t>(api) - kCurandFamily];
}
inline bool IsCurand(uint32_t id) {
  return id >= kCurandFamily && id < kCurandFamily + 0x400;
}

// The enumerator of a parameter of the C type `type` ("curandRngType_t") without what all have in
// common ("PSEUDO_XORWOW"); null if it has none.
const char* CurandValueName(std::string_view type, uint64_t value);
// The same of a result ("OUT_OF_RANGE"; of success "ok").
const char* CurandResultName(int64_t result);

}  // namespace deja::api

#endif  // DEJA_API_CURAND_TABLE_H_
