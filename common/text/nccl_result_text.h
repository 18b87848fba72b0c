// What ncclGetErrorString says of each result, in NCCL's words.
//
// For those that answer in NCCL's place, the loopback library and a replay. Static strings; any
// thread.
#ifndef DEJA_COMMON_TEXT_NCCL_RESULT_TEXT_H_
#define DEJA_COMMON_TEXT_NCCL_RESULT_TEXT_H_

#include <array>
#include <cstddef>
#include <cstdint>

namespace deja {

// `result`: an ncclResult_t.
inline const char* NcclResultText(int64_t result) {
  static constexpr std::array kTexts = {
      "no error",
      "unhandled cuda error (run with NCCL_DEBUG=INFO for details)",
      "unhandled system error (run with NCCL_DEBUG=INFO for details)",
      "internal error - please report this issue to the NCCL developers",
      "invalid argument (run with NCCL_DEBUG=WARN for details)",
      "invalid usage (run with NCCL_DEBUG=WARN for details)",
      "remote process exited or there was a network error",
      "NCCL operation in progress",
      "timeout",
  };
  if (result < 0 || static_cast<size_t>(result) >= kTexts.size()) return "unknown result code";
  return kTexts[static_cast<size_t>(result)];
}

}  // namespace deja

#endif  // DEJA_COMMON_TEXT_NCCL_RESULT_TEXT_H_
