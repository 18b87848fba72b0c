// A "real NCCL" that does nothing and remembers everything. Made from the same table as the hooks.
// Exports ncclX (weak) and pncclX, as NCCL does.
#pragma GCC visibility push(default)
#include <nccl.h>
#pragma GCC visibility pop

#include "tests/fakes/stub_answer.h"

static_assert(sizeof(ncclUniqueId) == kStubBytes);

extern "C" {
#define DEJA_FN(id, result, name, since, klass, ...)                               \
  __attribute__((visibility("default"))) result p##name DEJA_PARAMS(__VA_ARGS__) { \
    return Answer<result>(#name DEJA_FOR_EACH(DEJA_COMMA_NAME, __VA_ARGS__));      \
  }                                                                                \
  __attribute__((weak, alias("p" #name), visibility("default")))                   \
  result name DEJA_PARAMS(__VA_ARGS__);
#include "api/tables/nccl.def"
#undef DEJA_FN
}
