#include "api/c10d_table.h"

#include "api/table.h"
#include "api/table_lookup.h"

namespace deja::api {
namespace {

#define DEJA_TABLE_DEF "api/tables/c10d.def"
#define DEJA_TABLE_FAMILY kC10dFamily
#include "api/tables/table_rows.inc"

static_assert(TableIsSound(kTable, kC10dFamily));

}  // namespace

std::span<const ApiInfo> C10dTable() {
  return kTable;
}

const ApiInfo* FindC10d(uint32_t id) {
  return RowOf(kTable, kC10dFamily, id);
}

const ApiInfo* FindC10d(std::string_view name) {
  return RowNamed(kTable, name);
}

}  // namespace deja::api
