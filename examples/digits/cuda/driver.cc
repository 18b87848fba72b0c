#include "driver.h"

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>

namespace digits {
namespace {

CudaDriver Load() {
  void* library = dlopen("libcuda.so.1", RTLD_NOW);
  if (library == nullptr) {
    std::fprintf(stderr, "digits_train: --device=cuda needs CUDA's driver: %s\n", dlerror());
    std::exit(1);
  }
  CudaDriver driver;
#define DIGITS_LOOK_UP(name, parameters)                                                   \
  driver.name = reinterpret_cast<decltype(driver.name)>(dlsym(library, #name));            \
  if (driver.name == nullptr) {                                                            \
    std::fprintf(stderr, "digits_train: libcuda.so.1 has no " #name "; is it too old?\n"); \
    std::exit(1);                                                                          \
  }
  DIGITS_CUDA_FUNCTIONS(DIGITS_LOOK_UP)
#undef DIGITS_LOOK_UP
  CheckCuda(driver.cuInit(0), "cuInit", "the driver");
  return driver;
}

}  // namespace

const CudaDriver& TheCudaDriver() {
  static const CudaDriver driver = Load();
  return driver;
}

void CheckCuda(CUresult result, const char* call, const char* what) {
  if (result == CUDA_SUCCESS) return;
  std::fprintf(stderr, "digits_train: %s of %s returned %d\n", call, what,
               static_cast<int>(result));
  std::exit(1);
}

}  // namespace digits
