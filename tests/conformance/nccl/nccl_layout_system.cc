// NVIDIA's header: the sizes it has, and that each function in it has the type that the table says.
#include <nccl.h>

#include "api/table.h"
#include "tests/conformance/nccl/nccl_layout.h"

// The types that an older header does not know, so that the rows that need them can be read.
#if NCCL_VERSION_CODE < 22203
struct ncclSimInfo_t;
#endif
#if NCCL_VERSION_CODE < 22703
using ncclWindow_t = struct ncclWindow_vidmem*;
#endif
#if NCCL_VERSION_CODE < 22902
struct ncclWaitSignalDesc_t;
#endif
#if NCCL_VERSION_CODE < 22907
enum ncclCommMemStat_t : unsigned {};
#endif
#if NCCL_VERSION_CODE < 23004
using ncclParamHandle_t = struct ncclParamHandle*;
#elif NCCL_VERSION_CODE < 23007
#define ncclParamHandle_t ncclParamHandle_t*  // was the structure, not the pointer
#endif
#if NCCL_VERSION_CODE < 23102
struct ncclCollConfig_t;
#endif
#if NCCL_VERSION_CODE < 23203
struct ncclEncryptionConfig_t;
#endif

// A second declaration of a C function with another type is an error.
extern "C" {
#define DEJA_FN(id, result, name, since, klass, ...) \
  result name DEJA_PARAMS(__VA_ARGS__);              \
  result p##name DEJA_PARAMS(__VA_ARGS__);
#include "api/tables/nccl.def"
#undef DEJA_FN
}

NcclLayout SystemLayout() {
  static constexpr LayoutRow kRows[] = {
#include "tests/conformance/nccl/nccl_layout_rows.h"
  };
  return {NCCL_VERSION_CODE, kRows};
}
