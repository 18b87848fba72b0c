// Finding a row of an API's table. Constants only; any thread, signal handlers too.
#ifndef DEJA_API_TABLE_LOOKUP_H_
#define DEJA_API_TABLE_LOOKUP_H_

#include <cstdint>
#include <span>
#include <string_view>

#include "api/roles.h"

namespace deja::api {

// `family`: id of the first row; the others follow without a hole. Null if there is no such row.
inline const ApiInfo* RowOf(std::span<const ApiInfo> table, uint32_t family, uint32_t id) {
  const uint32_t index = id - family;
  return index < table.size() ? &table[index] : nullptr;
}

// One by one: names are looked up when a program asks dlsym, not when it calls.
inline const ApiInfo* RowNamed(std::span<const ApiInfo> table, std::string_view name) {
  for (const ApiInfo& info : table)
    if (name == info.name) return &info;
  return nullptr;
}

}  // namespace deja::api

#endif  // DEJA_API_TABLE_LOOKUP_H_
