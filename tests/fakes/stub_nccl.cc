// A "real NCCL" that does nothing and remembers everything: each function notes its raw arguments
// and returns what it was told to. Made from the same table as the hooks. Exports ncclX (weak) and
// pncclX, as NCCL does.
#pragma GCC visibility push(default)
#include "tests/fakes/stub_nccl.h"

#include <nccl.h>
#pragma GCC visibility pop

#include <cerrno>
#include <cstring>

#include "preload/api/nccl_table.h"
#include "preload/api/table.h"

static_assert(sizeof(ncclUniqueId) == kStubBytes);

stub_call stub_last = {};
uint64_t stub_calls = 0;
uint64_t stub_result = 0;
int stub_errno = 0;

namespace {

using deja::preload::NcclApi;

// What is passed by value is kept by value.
template <typename T>
void Note(int index, const T& value) {
  stub_last.args[index] = deja::preload::ToWord(value);
  if constexpr (std::is_class_v<T>) std::memcpy(stub_last.bytes, &value, sizeof value);
}

template <typename Result, typename... Args>
Result Answer(const char* name, const Args&... args) {
  stub_last = {};
  stub_last.name = name;
  stub_last.arg_count = sizeof...(args);
  int i = 0;
  (Note(i++, args), ...);
  (void)i;
  ++stub_calls;
  errno = stub_errno;
  if constexpr (!std::is_void_v<Result>) return deja::preload::FromWord<Result>(stub_result);
}

}  // namespace

extern "C" {
#define DEJA_COMMA_NAME(p) , DEJA_PARAM_NAME_ p
#define DEJA_FN(id, result, name, since, klass, ...)                               \
  __attribute__((visibility("default"))) result p##name DEJA_PARAMS(__VA_ARGS__) { \
    return Answer<result>(#name DEJA_FOR_EACH(DEJA_COMMA_NAME, __VA_ARGS__));      \
  }                                                                                \
  __attribute__((weak, alias("p" #name), visibility("default")))                   \
  result name DEJA_PARAMS(__VA_ARGS__);
#include "preload/api/nccl.def"
#undef DEJA_FN
}
