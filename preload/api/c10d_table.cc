#include "preload/api/c10d_table.h"

#include "preload/api/table.h"

namespace deja::preload {
namespace {

#define DEJA_FN(id, result, name, since, klass, ...) \
  DEJA_TABLE_PARAMS(kParamsOf_##name, __VA_ARGS__)
#include "preload/api/c10d.def"
#undef DEJA_FN

constexpr ApiInfo kTable[] = {
#define DEJA_FN(id, result, name, since, klass, ...) \
  {                                                  \
      kC10dFamily + (id),                            \
      #name,                                         \
      since,                                         \
      ApiClass::k##klass,                            \
      ReturnKindOf(#result),                         \
      ParamCount(kParamsOf_##name),                  \
      kParamsOf_##name},
#include "preload/api/c10d.def"
#undef DEJA_FN
};

static_assert(TableIsSound(kTable, kC10dFamily));

}  // namespace

std::span<const ApiInfo> C10dTable() {
  return kTable;
}

const ApiInfo* FindC10d(uint32_t id) {
  const uint32_t index = id - kC10dFamily;
  return index < std::size(kTable) ? &kTable[index] : nullptr;
}

const ApiInfo* FindC10d(std::string_view name) {
  for (const ApiInfo& info : kTable)
    if (name == info.name) return &info;
  return nullptr;
}

}  // namespace deja::preload
