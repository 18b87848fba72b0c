// Result<T>: a value or an Error. Used by all libraries; nothing in Deja throws.
//
// An Error's message names the operation, the object, the finding and what to do next: the command
// line prints it as it is. Values; no ownership; any thread. Not for signal handlers or hot paths
// (messages allocate).
#ifndef DEJA_COMMON_RESULT_H_
#define DEJA_COMMON_RESULT_H_

#include <string>
#include <tl/expected.hpp>
#include <utility>

namespace deja {

enum class ErrorCode {
  kInvalidArgument,  // the caller asked for something that makes no sense
  kNotFound,         // a file, rank, communicator, payload … that is not there
  kIo,               // the operating system refused; sys_errno is set
  kCorrupt,          // bytes that are not what the format says
  kTruncated,        // a file ends early (its writer died)
  kUnsupportedVersion,
  kForeign,  // not one of Deja's files at all
  kLimit,    // a bound of docs/FORMAT.md or of memory was exceeded
  kInternal,
};

struct Error {
  ErrorCode code = ErrorCode::kInternal;
  std::string message;
  int sys_errno = 0;
};

template <typename T>
using Result = tl::expected<T, Error>;
using Status = Result<void>;

inline tl::unexpected<Error> Fail(ErrorCode code, std::string message, int sys_errno = 0) {
  return tl::unexpected<Error>(Error{code, std::move(message), sys_errno});
}

// "MESSAGE: strerror(errno)"; code kIo. Defined in result.cc.
tl::unexpected<Error> FailErrno(std::string message, int sys_errno);

}  // namespace deja

#define DEJA_CONCAT_INNER(a, b) a##b
#define DEJA_CONCAT(a, b) DEJA_CONCAT_INNER(a, b)

// Returns the error of `expr` from the enclosing function, if it has one.
#define DEJA_RETURN_IF_ERROR(expr)                                             \
  do {                                                                         \
    auto deja_status_ = (expr);                                                \
    if (!deja_status_) return tl::unexpected(std::move(deja_status_.error())); \
  } while (0)

// `DEJA_ASSIGN_OR_RETURN(auto x, F());`
#define DEJA_ASSIGN_OR_RETURN(decl, expr)                                          \
  auto DEJA_CONCAT(deja_result_, __LINE__) = (expr);                               \
  if (!DEJA_CONCAT(deja_result_, __LINE__))                                        \
    return tl::unexpected(std::move(DEJA_CONCAT(deja_result_, __LINE__).error())); \
  decl = std::move(*DEJA_CONCAT(deja_result_, __LINE__))

#endif  // DEJA_COMMON_RESULT_H_
