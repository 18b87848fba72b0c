#include "preload/curand_library.h"

#include "preload/opened_library.h"

namespace deja::preload {
namespace {

// Since CUDA 10.1.
constexpr const char* kFiles[] = {"libcurand.so.10"};

constinit OpenedLibrary g_library(kFiles);

}  // namespace

void* RealCurand(const char* name) {
  return g_library.Find(name);
}

void RememberCurandHandle(void* handle, const char* name) {
  g_library.Remember(handle, name);
}

}  // namespace deja::preload
