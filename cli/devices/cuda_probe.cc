#include "cli/devices/cuda_probe.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "include/compat/cuda.h"

namespace deja::cli {
namespace {

// A driver that does not come to an end by then has hung.
constexpr unsigned int kPatienceSeconds = 20;

struct Answer {
  int loaded = 0;
  int init = 0;
  int version = 0;
  int devices = 0;
  char error[256] = {};  // of dlopen
};

template <typename Function>
Function Find(void* library, const char* name) {
  return reinterpret_cast<Function>(dlsym(library, name));
}

Answer Ask() {
  Answer answer;
  void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  const auto init =
      library == nullptr ? nullptr : Find<CUresult (*)(unsigned int)>(library, "cuInit");
  if (init == nullptr) {
    const char* why = dlerror();
    std::snprintf(answer.error, sizeof answer.error, "%s", why == nullptr ? "?" : why);
    return answer;
  }
  answer.loaded = 1;
  if (const auto version = Find<CUresult (*)(int*)>(library, "cuDriverGetVersion"))
    version(&answer.version);
  answer.init = init(0);
  const auto count = Find<CUresult (*)(int*)>(library, "cuDeviceGetCount");
  if (answer.init == CUDA_SUCCESS && count != nullptr) answer.init = count(&answer.devices);
  return answer;
}

// False: it has not answered, `status` says what became of it.
bool AskInChild(const std::optional<std::string>& visible, Answer& answer, int& status) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return false;
  const pid_t pid = fork();
  if (pid == 0) {
    alarm(kPatienceSeconds);
    if (visible)
      setenv("CUDA_VISIBLE_DEVICES", visible->c_str(), 1);
    else
      unsetenv("CUDA_VISIBLE_DEVICES");
    const Answer found = Ask();
    _exit(write(ends[1], &found, sizeof found) == sizeof found ? 0 : 1);
  }
  close(ends[1]);
  ssize_t got = -1;
  while (pid > 0 && (got = read(ends[0], &answer, sizeof answer)) < 0 && errno == EINTR) {
  }
  close(ends[0]);
  while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return got == static_cast<ssize_t>(sizeof answer);
}

// What the numbers mean that cuInit returns most where a driver does not work.
const char* MeaningOf(int result) {
  switch (result) {
    case CUDA_ERROR_NO_DEVICE:
      return "no device";
    case CUDA_ERROR_SYSTEM_DRIVER_MISMATCH:
      return "the driver's library and its kernel module are of different versions";
    case CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE:
      return "the compatibility library does not support this device";
    case CUDA_ERROR_UNKNOWN:
      return "unknown error";
    default:
      return "";
  }
}

const char* FixOf(int result) {
  switch (result) {
    case CUDA_ERROR_SYSTEM_DRIVER_MISMATCH:
      return "load the new kernel module (reboot), or in a container: the host's libcuda.so.1";
    case CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE:
      return "take the folder of cuda-compat out of LD_LIBRARY_PATH";
    case CUDA_ERROR_UNKNOWN:
      return "see that nvidia-smi works, and that /dev/nvidia-uvm is there (modprobe nvidia-uvm)";
    default:
      return "";
  }
}

}  // namespace

CudaFound LookForCuda(const std::optional<std::string>& visible) {
  CudaFound found;
  Answer answer;
  int status = 0;
  const std::string with =
      visible ? fmt::format(", with CUDA_VISIBLE_DEVICES={}", *visible) : std::string();
  if (!AskInChild(visible, answer, status)) {
    found.what = CudaFound::What::kFailed;
    found.text = WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM
                     ? fmt::format(
                           "the CUDA driver does not start: cuInit had not returned "
                           "after {} s",
                           kPatienceSeconds)
                     : "the CUDA driver ended the process that asked it for its devices";
    found.fix = "see that nvidia-smi works";
    return found;
  }
  answer.error[sizeof answer.error - 1] = 0;
  found.version = answer.version;
  found.devices = answer.devices;
  const std::string driver = answer.version == 0
                                 ? "the CUDA driver"
                                 : fmt::format("the CUDA driver (for {}.{})", answer.version / 1000,
                                               answer.version % 1000 / 10);
  if (answer.loaded == 0) {
    found.text = fmt::format("there is no CUDA driver: {}", answer.error);
    found.fix = "in a container: docker run --gpus all; elsewhere: NVIDIA's driver";
  } else if (answer.init == CUDA_ERROR_NO_DEVICE ||
             (answer.init == CUDA_SUCCESS && answer.devices == 0)) {
    found.what = CudaFound::What::kNoDevice;
    found.text = fmt::format("{} has no device{}", driver, with);
    found.fix = visible ? "deja replay --devices N gives a program other devices than it had" : "";
  } else if (answer.init != CUDA_SUCCESS) {
    const char* meaning = MeaningOf(answer.init);
    found.what = CudaFound::What::kFailed;
    found.text = fmt::format("{} does not start: cuInit returned {}{}", driver, answer.init,
                             *meaning == 0 ? "" : fmt::format(" ({})", meaning));
    found.fix = FixOf(answer.init);
  } else {
    found.what = CudaFound::What::kDevices;
    found.text = fmt::format("{} has {} device{}{}", driver, answer.devices,
                             answer.devices == 1 ? "" : "s", with);
  }
  return found;
}

}  // namespace deja::cli
