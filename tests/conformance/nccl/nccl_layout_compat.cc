#include <nccl.h>

#include "tests/conformance/nccl/nccl_layout.h"

static_assert(NCCL_VERSION_CODE == 23203, "this file must see include/compat/nccl.h");

NcclLayout CompatLayout() {
  static constexpr LayoutRow kRows[] = {
#include "tests/conformance/nccl/nccl_layout_rows.h"
  };
  return {NCCL_VERSION_CODE, kRows};
}
