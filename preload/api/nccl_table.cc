#include "preload/api/nccl_table.h"

#include "preload/api/table.h"

namespace deja::preload {
namespace {

#define DEJA_FN(id, result, name, since, klass, ...) \
  DEJA_TABLE_PARAMS(kParamsOf_##name, __VA_ARGS__)
#include "preload/api/nccl.def"
#undef DEJA_FN

constexpr ApiInfo kTable[] = {
#define DEJA_FN(id, result, name, since, klass, ...) \
  {                                                  \
      kNcclFamily + (id),                            \
      #name,                                         \
      since,                                         \
      ApiClass::k##klass,                            \
      ReturnKindOf(#result),                         \
      ParamCount(kParamsOf_##name),                  \
      kParamsOf_##name},
#include "preload/api/nccl.def"
#undef DEJA_FN
};

static_assert(TableIsSound(kTable, kNcclFamily));

}  // namespace

std::span<const ApiInfo> NcclTable() {
  return kTable;
}

const ApiInfo* FindNccl(uint32_t id) {
  uint32_t index = id - kNcclFamily;
  return index < std::size(kTable) ? &kTable[index] : nullptr;
}

const ApiInfo* FindNccl(std::string_view name) {
  // Sixty short names; the callers have already seen that it begins with "nccl".
  for (const ApiInfo& info : kTable)
    if (name == info.name) return &info;
  return nullptr;
}

}  // namespace deja::preload
