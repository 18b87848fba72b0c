#include "api/nccl_table.h"

#include "api/table.h"
#include "api/table_lookup.h"

namespace deja::api {
namespace {

#define DEJA_TABLE_DEF "api/tables/nccl.def"
#define DEJA_TABLE_FAMILY kNcclFamily
#include "api/tables/table_rows.inc"

static_assert(TableIsSound(kTable, kNcclFamily));

}  // namespace

std::span<const ApiInfo> NcclTable() {
  return kTable;
}

const ApiInfo* FindNccl(uint32_t id) {
  return RowOf(kTable, kNcclFamily, id);
}

const ApiInfo* FindNccl(std::string_view name) {
  return RowNamed(kTable, name);
}

}  // namespace deja::api
