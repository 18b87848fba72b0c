#include "tests/fakes/cuda/kernels/sim_digest.h"

#include <atomic>
#include <cstdlib>
#include <cstring>

#include "tests/fakes/cuda/kernels/digest_grid.h"
#include "tests/fakes/cuda/sim_memory.h"

namespace cusim {
namespace {

using deja::digest::gpu::Work;

constexpr DigestKernel kKernels[] = {
#define DEJA_KERNEL(name, type, number) {#name, number},
    DEJA_DIGEST_KERNELS(DEJA_KERNEL)
#undef DEJA_KERNEL
};

std::atomic<int> g_launches{0};

template <typename T>
T Param(void** params, int i) {
  T value;
  std::memcpy(&value, params[i], sizeof value);
  return value;
}

unsigned char* BytesOf(void** params, int i) {
  return static_cast<unsigned char*>(Backing(Param<void*>(params, i)));
}

}  // namespace

bool IsPtx(const void* image) {
  // A table begins with a pointer, of which this cannot be a part.
  constexpr char kBegin[] = {'\n', '.', 'v', 'e', 'r', 's', 'i', 'o'};
  return std::memcmp(image, kBegin, sizeof kBegin) == 0;
}

const DigestKernel* FindDigestKernel(const std::string& ptx, const std::string& name) {
  if (ptx.find(".entry " + name + "(") == std::string::npos) return nullptr;
  for (const DigestKernel& kernel : kKernels)
    if (name == kernel.name) return &kernel;
  return nullptr;
}

std::function<void()> DigestWork(const DigestKernel& kernel, unsigned int thread_blocks,
                                 unsigned int threads, void** params) {
  if (threads != deja::digest::gpu::kThreads || thread_blocks == 0) return nullptr;
  const Work work{BytesOf(params, 0), Param<uint64_t>(params, 1), BytesOf(params, 2),
                  BytesOf(params, 3), Param<uint64_t>(params, 4)};
  ++g_launches;
  const uint32_t number = kernel.number;
  const char* taken = std::getenv("CUDA_SIM_PTX");
  const bool wrong = taken != nullptr && std::strcmp(taken, "wrong") == 0;
  return [number, work, thread_blocks, wrong] {
    RunDigestGrid(number, work, thread_blocks);
    if (wrong) work.results[0] ^= 1;
  };
}

int DigestLaunches() {
  return g_launches;
}

}  // namespace cusim
