// DeviceSwap by cuCheckpointProcess*: lock, then checkpoint; restore, then unlock.
//
// The functions are made for another process, whose driver has a thread that obeys. They are used
// only that way: what happens when a process swaps itself is unknown. The driver loaded here is the
// one that the processes have. cuInit makes no context, so this process takes no device memory.
#include <dlfcn.h>
#include <fmt/format.h>
#include <unistd.h>

#include "cli/devices/device_swap.h"
#include "common/process/proc_stat.h"
#include "include/compat/cuda.h"

namespace deja::cli {
namespace {

// How long the work of a rank's streams may take until it is left alone.
constexpr unsigned int kPatienceMs = 10000;

struct Calls {
#define DEJA_CU(name, params) CUresult(*name) params = nullptr;
#include "cli/devices/cuda_checkpoint.def"
#undef DEJA_CU
};

class CudaSwap final : public DeviceSwap {
 public:
  explicit CudaSwap(const Calls& calls) : calls_(calls) {}

  SwapResult TakeOut(pid_t process) override {
    if (!IsBelow(process, getpid())) return Foreign(process);
    CUcheckpointLockArgs patience{};
    patience.timeoutMs = kPatienceMs;
    const CUresult locked = calls_.cuCheckpointProcessLock(process, &patience);
    if (locked == CUDA_ERROR_NOT_READY)
      return {
          SwapResult::How::kBusy,
          fmt::format("its devices were not done with their work within {} s", kPatienceMs / 1000)};
    if (locked != CUDA_SUCCESS) return Refused("cuCheckpointProcessLock", locked);
    const CUresult taken = calls_.cuCheckpointProcessCheckpoint(process, nullptr);
    if (taken == CUDA_SUCCESS) return {};
    SwapResult failed = Refused("cuCheckpointProcessCheckpoint", taken);
    if (StateOf(process) != CU_PROCESS_STATE_LOCKED ||
        calls_.cuCheckpointProcessUnlock(process, nullptr) != CUDA_SUCCESS)
      failed.how = SwapResult::How::kLost;
    return failed;
  }

  SwapResult BringBack(pid_t process) override {
    if (!IsBelow(process, getpid())) return Foreign(process);
    const CUresult restored = calls_.cuCheckpointProcessRestore(process, nullptr);
    if (restored != CUDA_SUCCESS) {
      SwapResult failed = Refused("cuCheckpointProcessRestore", restored);
      const bool can_again = StateOf(process) == CU_PROCESS_STATE_CHECKPOINTED;
      failed.how = can_again && restored == CUDA_ERROR_OUT_OF_MEMORY ? SwapResult::How::kNoRoom
                                                                     : SwapResult::How::kLost;
      return failed;
    }
    const CUresult unlocked = calls_.cuCheckpointProcessUnlock(process, nullptr);
    if (unlocked == CUDA_SUCCESS) return {};
    SwapResult failed = Refused("cuCheckpointProcessUnlock", unlocked);
    failed.how = SwapResult::How::kLost;
    return failed;
  }

 private:
  // The replayed program says which process it is, and may say what it likes.
  static SwapResult Foreign(pid_t process) {
    return {SwapResult::How::kRefused,
            fmt::format("it says that it is process {}, which is none of this replay's", process)};
  }
  static SwapResult Refused(const char* call, CUresult result) {
    return {SwapResult::How::kRefused,
            fmt::format("{} returned {}{}", call, static_cast<int>(result),
                        result == CUDA_ERROR_NOT_SUPPORTED ? " (not supported)" : "")};
  }
  [[nodiscard]] CUprocessState StateOf(pid_t process) const {
    CUprocessState state = CU_PROCESS_STATE_FAILED;
    return calls_.cuCheckpointProcessGetState(process, &state) == CUDA_SUCCESS
               ? state
               : CU_PROCESS_STATE_FAILED;
  }

  Calls calls_;
};

}  // namespace

Result<std::unique_ptr<DeviceSwap>> OpenCudaSwap(const std::string& driver) {
  // Stays open: its functions are kept.
  void* library = dlopen(driver.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* why = dlerror();
    return Fail(ErrorCode::kNotFound,
                fmt::format("swapping device memory: {}: loading the driver: {}", driver,
                            why == nullptr ? "?" : why));
  }
  Calls calls;
  const char* missing = nullptr;
#define DEJA_CU(name, params)                                                 \
  calls.name = reinterpret_cast<decltype(calls.name)>(dlsym(library, #name)); \
  if (calls.name == nullptr) missing = #name;
#include "cli/devices/cuda_checkpoint.def"
#undef DEJA_CU
  if (missing != nullptr)
    return Fail(
        ErrorCode::kNotFound,
        fmt::format("swapping device memory: {}: the driver has no {}; use driver 570 or later",
                    driver, missing));
  const auto init = reinterpret_cast<CUresult (*)(unsigned int)>(dlsym(library, "cuInit"));
  const CUresult ready = init == nullptr ? CUDA_ERROR_NOT_FOUND : init(0);
  if (ready != CUDA_SUCCESS)
    return Fail(ErrorCode::kNotFound, fmt::format("swapping device memory: {}: cuInit returned {}",
                                                  driver, static_cast<int>(ready)));
  return std::make_unique<CudaSwap>(calls);
}

}  // namespace deja::cli
