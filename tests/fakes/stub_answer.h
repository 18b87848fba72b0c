// The body of a stub library's functions: it notes the raw arguments and returns what it was told
// to. One source of each stub includes it; what it defines is that library's.
#ifndef DEJA_TESTS_FAKES_STUB_ANSWER_H_
#define DEJA_TESTS_FAKES_STUB_ANSWER_H_

#pragma GCC visibility push(default)
#include "tests/fakes/stub_calls.h"
#pragma GCC visibility pop

#include <cerrno>
#include <cstring>

#include "api/table.h"

stub_call stub_last = {};
uint64_t stub_calls = 0;
uint64_t stub_result = 0;
int stub_errno = 0;

namespace {

// What is passed by value is kept by value.
template <typename T>
void Note(int index, const T& value) {
  stub_last.args[index] = deja::api::ToWord(value);
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
  if constexpr (!std::is_void_v<Result>) return deja::api::FromWord<Result>(stub_result);
}

}  // namespace

#define DEJA_COMMA_NAME(p) , DEJA_PARAM_NAME_ p

#endif  // DEJA_TESTS_FAKES_STUB_ANSWER_H_
