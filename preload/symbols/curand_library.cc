#include "preload/symbols/curand_library.h"

#include "preload/symbols/opened_library.h"

namespace deja::preload {
namespace {

// Since CUDA 10.1.
constexpr const char* kCurandFiles[] = {"libcurand.so.10"};

constinit OpenedLibrary g_curand(kCurandFiles);

}  // namespace

void* RealCurand(const char* name) {
  return g_curand.Find(name);
}

void RememberCurandHandle(void* handle, const char* name) {
  g_curand.Remember(handle, name);
}

}  // namespace deja::preload
