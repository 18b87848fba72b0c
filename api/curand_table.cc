#include "api/curand_table.h"

#include "api/table.h"
#include "api/table_lookup.h"
#include "include/compat/curand.h"

namespace deja::api {
namespace {

#define DEJA_TABLE_DEF "api/tables/curand.def"
#define DEJA_TABLE_FAMILY kCurandFamily
#include "api/tables/table_rows.inc"

static_assert(TableIsSound(kTable, kCurandFamily));

struct Enumerator {
  std::string_view type;
  uint64_t value;
  const char* name;
};

#define DEJA_RNG(name) \
  { "curandRngType_t", CURAND_RNG_##name, #name }
#define DEJA_ORDERING(name) \
  { "curandOrdering_t", CURAND_ORDERING_##name, #name }
#define DEJA_METHOD(name) \
  { "curandMethod_t", CURAND_##name, #name }
#define DEJA_STATUS(name) \
  { "curandStatus_t", CURAND_STATUS_##name, #name }
constexpr Enumerator kEnumerators[] = {
    DEJA_RNG(TEST),
    DEJA_RNG(PSEUDO_DEFAULT),
    DEJA_RNG(PSEUDO_XORWOW),
    DEJA_RNG(PSEUDO_MRG32K3A),
    DEJA_RNG(PSEUDO_MTGP32),
    DEJA_RNG(PSEUDO_MT19937),
    DEJA_RNG(PSEUDO_PHILOX4_32_10),
    DEJA_RNG(QUASI_DEFAULT),
    DEJA_RNG(QUASI_SOBOL32),
    DEJA_RNG(QUASI_SCRAMBLED_SOBOL32),
    DEJA_RNG(QUASI_SOBOL64),
    DEJA_RNG(QUASI_SCRAMBLED_SOBOL64),
    DEJA_ORDERING(PSEUDO_BEST),
    DEJA_ORDERING(PSEUDO_DEFAULT),
    DEJA_ORDERING(PSEUDO_SEEDED),
    DEJA_ORDERING(PSEUDO_LEGACY),
    DEJA_ORDERING(PSEUDO_DYNAMIC),
    DEJA_ORDERING(QUASI_DEFAULT),
    DEJA_METHOD(CHOOSE_BEST),
    DEJA_METHOD(ITR),
    DEJA_METHOD(KNUTH),
    DEJA_METHOD(HITR),
    DEJA_METHOD(M1),
    DEJA_METHOD(M2),
    DEJA_METHOD(BINARY_SEARCH),
    DEJA_METHOD(DISCRETE_GAUSS),
    DEJA_METHOD(REJECTION),
    DEJA_METHOD(DEVICE_API),
    DEJA_METHOD(FAST_REJECTION),
    DEJA_METHOD(3RD),
    DEJA_METHOD(DEFINITION),
    DEJA_METHOD(POISSON),
    DEJA_STATUS(VERSION_MISMATCH),
    DEJA_STATUS(NOT_INITIALIZED),
    DEJA_STATUS(ALLOCATION_FAILED),
    DEJA_STATUS(TYPE_ERROR),
    DEJA_STATUS(OUT_OF_RANGE),
    DEJA_STATUS(LENGTH_NOT_MULTIPLE),
    DEJA_STATUS(DOUBLE_PRECISION_REQUIRED),
    DEJA_STATUS(LAUNCH_FAILURE),
    DEJA_STATUS(PREEXISTING_FAILURE),
    DEJA_STATUS(INITIALIZATION_FAILED),
    DEJA_STATUS(ARCH_MISMATCH),
    DEJA_STATUS(INTERNAL_ERROR),
    {"curandStatus_t", CURAND_STATUS_SUCCESS, "ok"},
};
#undef DEJA_RNG
#undef DEJA_ORDERING
#undef DEJA_METHOD
#undef DEJA_STATUS

}  // namespace

std::span<const ApiInfo> CurandTable() {
  return kTable;
}

const ApiInfo* FindCurand(uint32_t id) {
  return RowOf(kTable, kCurandFamily, id);
}

const ApiInfo* FindCurand(std::string_view name) {
  return RowNamed(kTable, name);
}

const char* CurandValueName(std::string_view type, uint64_t value) {
  for (const Enumerator& known : kEnumerators)
    if (known.value == value && known.type == type) return known.name;
  return nullptr;
}

const char* CurandResultName(int64_t result) {
  return CurandValueName("curandStatus_t", static_cast<uint64_t>(result));
}

}  // namespace deja::api
