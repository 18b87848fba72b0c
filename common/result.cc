#include "common/result.h"

#include <cstring>

namespace deja {

tl::unexpected<Error> FailErrno(std::string message, int sys_errno) {
  char text[128];
  message += ": ";
  message += strerror_r(sys_errno, text, sizeof text);  // GNU variant: returns the text
  return Fail(ErrorCode::kIo, std::move(message), sys_errno);
}

}  // namespace deja
