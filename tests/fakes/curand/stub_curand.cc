// A "real cuRAND" that does nothing and remembers everything. Made from the same table as the
// hooks.
#pragma GCC visibility push(default)
#include "include/compat/curand.h"
#pragma GCC visibility pop

#include "tests/fakes/stub_answer.h"

extern "C" {
#define DEJA_FN(id, result, name, since, klass, ...)                          \
  result name DEJA_PARAMS(__VA_ARGS__) {                                      \
    return Answer<result>(#name DEJA_FOR_EACH(DEJA_COMMA_NAME, __VA_ARGS__)); \
  }
#include "api/tables/curand.def"
#undef DEJA_FN
}
