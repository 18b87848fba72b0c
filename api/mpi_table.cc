#include "api/mpi_table.h"

#include <cstdio>

#include "api/table.h"
#include "api/table_lookup.h"

namespace deja::api {
namespace {

#define DEJA_TABLE_DEF "api/tables/mpi.def"
#define DEJA_TABLE_FAMILY kMpiFamily
#include "api/tables/table_rows.inc"

// That no name occurs twice is in the enumeration.
static_assert(IdsAreDense(kTable, kMpiFamily));

constexpr MpiPredefined kPredefined[] = {
#define DEJA_HANDLE(number, symbol, name, dtype) {#symbol, #name, dtype},
#include "api/tables/mpi_handles.def"
#undef DEJA_HANDLE
};

constexpr uint32_t kNumbers[] = {
#define DEJA_HANDLE(number, symbol, name, dtype) number,
#include "api/tables/mpi_handles.def"
#undef DEJA_HANDLE
};

consteval bool NumbersAreDense() {
  for (size_t i = 0; i < std::size(kNumbers); ++i)
    if (kNumbers[i] != i + 1) return false;
  return std::size(kNumbers) < kFirstMpiHandle;
}
static_assert(NumbersAreDense());

}  // namespace

std::span<const ApiInfo> MpiTable() {
  return kTable;
}

const ApiInfo* FindMpi(uint32_t id) {
  return RowOf(kTable, kMpiFamily, id);
}

const ApiInfo* FindMpi(std::string_view name) {
  return RowNamed(kTable, name);
}

std::span<const MpiPredefined> MpiPredefinedHandles() {
  return kPredefined;
}

MpiHandleName NameOfMpiHandle(uint64_t number) {
  MpiHandleName name;
  if (number == 0)
    snprintf(name.text, sizeof name.text, "null");
  else if (number <= std::size(kPredefined))
    snprintf(name.text, sizeof name.text, "%s", kPredefined[number - 1].name);
  else if ((number & kMpichHandle) != 0)
    snprintf(name.text, sizeof name.text, "%#lx", static_cast<unsigned long>(number & 0xffffffff));
  else
    snprintf(name.text, sizeof name.text, "handle %lu",
             static_cast<unsigned long>(number - kFirstMpiHandle));
  return name;
}

}  // namespace deja::api
