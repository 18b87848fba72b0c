#include "api/libc_table.h"

#include <iterator>

#include "api/table.h"
#include "api/table_lookup.h"

namespace deja::api {
namespace {

constexpr ApiInfo kTable[] = {
#define DEJA_FN(id, result, name, since, klass, kind) \
  {kLibcFamily + (id), #name, since, ApiClass::k##klass, ReturnKindOf(#result), 0, nullptr},
#include "api/tables/libc.def"
#undef DEJA_FN
};

static_assert(TableIsSound(kTable, kLibcFamily));

constexpr InputKind kKinds[] = {
#define DEJA_FN(id, result, name, since, klass, kind) InputKind::k##kind,
#include "api/tables/libc.def"
#undef DEJA_FN
};

}  // namespace

std::span<const ApiInfo> LibcTable() {
  return kTable;
}

const ApiInfo* FindLibc(uint32_t id) {
  return RowOf(kTable, kLibcFamily, id);
}

const ApiInfo* FindLibc(std::string_view name) {
  return RowNamed(kTable, name);
}

InputKind InputKindOf(uint32_t id) {
  if (id >= kMpiFamily) return InputKind::kMpi;
  const uint32_t row = id - kLibcFamily;
  return row < std::size(kKinds) ? kKinds[row] : InputKind::kNone;
}

bool AsksForName(uint32_t id) {
  switch (static_cast<LibcApi>(id)) {
    case LibcApi::kgetaddrinfo:
    case LibcApi::kgetnameinfo:
    case LibcApi::kgethostbyname_r:
    case LibcApi::kgethostbyname2_r:
    case LibcApi::kgethostbyaddr_r:
      return true;
    default:
      return false;
  }
}

}  // namespace deja::api
