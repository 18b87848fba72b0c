#include "tests/fakes/cuda/kernels/sim_digits.h"

#include <atomic>
#include <cstdint>
#include <cstring>

#include "examples/digits/cuda/kernels.h"
#include "tests/fakes/cuda/sim_memory.h"

namespace cusim {
namespace {

std::atomic<uint32_t> g_launches{0};

// The launch's copy of the parameters, with addresses at which the processor finds the bytes.
template <class Kernel>
Kernel ParametersOf(void** params) {
  Kernel kernel;
  std::memcpy(&kernel, params[0], sizeof kernel);
  auto* bytes = reinterpret_cast<unsigned char*>(&kernel);
  for (uint32_t i = 0; i < Kernel::kPointers; ++i) {
    void* address;
    std::memcpy(&address, bytes + i * sizeof address, sizeof address);
    address = Backing(address);
    std::memcpy(bytes + i * sizeof address, &address, sizeof address);
  }
  return kernel;
}

template <class Kernel>
std::function<void()> WorkOf(void** params) {
  return [kernel = ParametersOf<Kernel>(params), launch = ++g_launches] {
    // From somewhere on, upwards or downwards.
    const uint32_t first = static_cast<uint32_t>(launch * uint64_t{2654435761u} % kernel.count);
    for (uint32_t i = 0; i < kernel.count; ++i) {
      const uint32_t at = (first + i) % kernel.count;
      kernel(launch % 2 == 0 ? at : kernel.count - 1 - at);
    }
  };
}

struct Named {
  const char* name;
  DigitsKernel kernel;
};
constexpr Named kKernels[] = {
#define DEJA_NAMED(name, Kernel) {#name, &WorkOf<digits::kernels::Kernel>},
    DIGITS_KERNELS(DEJA_NAMED)
#undef DEJA_NAMED
};

}  // namespace

DigitsKernel FindDigitsKernel(const std::string& ptx, const std::string& name) {
  if (ptx.find(".entry " + name + "(") == std::string::npos) return nullptr;
  for (const Named& named : kKernels)
    if (name == named.name) return named.kernel;
  return nullptr;
}

}  // namespace cusim
