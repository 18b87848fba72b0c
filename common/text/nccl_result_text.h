// NCCL's results: their names, what ncclGetErrorString says of each, and short words for people.
//
// One table, by ncclResult_t. For readers of traces, which know no nccl.h, and for those that
// answer in NCCL's place, the loopback library and a replay. Static strings; any thread.
#ifndef DEJA_COMMON_TEXT_NCCL_RESULT_TEXT_H_
#define DEJA_COMMON_TEXT_NCCL_RESULT_TEXT_H_

#include <cstddef>
#include <cstdint>
#include <iterator>

namespace deja {

struct NcclResultInfo {
  const char* name;   // "ncclSystemError"
  const char* text;   // NCCL's own
  const char* words;  // "system error"
};

inline constexpr NcclResultInfo kNcclResults[] = {
    {"ncclSuccess", "no error", "ok"},
    {"ncclUnhandledCudaError", "unhandled cuda error (run with NCCL_DEBUG=INFO for details)",
     "unhandled CUDA error"},
    {"ncclSystemError", "unhandled system error (run with NCCL_DEBUG=INFO for details)",
     "system error"},
    {"ncclInternalError", "internal error - please report this issue to the NCCL developers",
     "internal error"},
    {"ncclInvalidArgument", "invalid argument (run with NCCL_DEBUG=WARN for details)",
     "invalid argument"},
    {"ncclInvalidUsage", "invalid usage (run with NCCL_DEBUG=WARN for details)", "invalid usage"},
    {"ncclRemoteError", "remote process exited or there was a network error", "remote error"},
    {"ncclInProgress", "NCCL operation in progress", "in progress"},
    {"ncclTimeout", "timeout", "timeout"},
};
inline constexpr int64_t kNcclSuccess = 0;
inline constexpr int64_t kNcclInProgress = 7;

// Null: NCCL has no such result. `result`: an ncclResult_t.
inline const NcclResultInfo* FindNcclResult(int64_t result) {
  if (result < 0 || static_cast<size_t>(result) >= std::size(kNcclResults)) return nullptr;
  return &kNcclResults[result];
}

inline const char* NcclResultText(int64_t result) {
  const NcclResultInfo* info = FindNcclResult(result);
  return info == nullptr ? "unknown result code" : info->text;
}

inline const char* NcclResultName(int64_t result) {
  const NcclResultInfo* info = FindNcclResult(result);
  return info == nullptr ? "an unknown result" : info->name;
}

}  // namespace deja

#endif  // DEJA_COMMON_TEXT_NCCL_RESULT_TEXT_H_
