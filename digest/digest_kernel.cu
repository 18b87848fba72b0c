// The kernels of digest_kernel.h, one for each type of element. tools/make_ptx.py makes
// digest_kernel.ptx.inc of this file with clang, which needs nothing of CUDA's; nvcc compiles it
// too.
#include "digest/digest_kernel.h"

namespace deja::digest::gpu {
namespace {

#if defined(__NVCC__)
__device__ inline uint32_t ThreadInBlock() {
  return threadIdx.x;
}
__device__ inline uint32_t ThreadBlock() {
  return blockIdx.x;
}
__device__ inline uint32_t ThreadBlocks() {
  return gridDim.x;
}
__device__ inline uint32_t FromLaneAbove(uint32_t value, uint32_t distance) {
  return __shfl_down_sync(0xffffffffu, value, distance);
}
#else
DEJA_GPU uint32_t ThreadInBlock() {
  return __nvvm_read_ptx_sreg_tid_x();
}
DEJA_GPU uint32_t ThreadBlock() {
  return __nvvm_read_ptx_sreg_ctaid_x();
}
DEJA_GPU uint32_t ThreadBlocks() {
  return __nvvm_read_ptx_sreg_nctaid_x();
}
DEJA_GPU uint32_t FromLaneAbove(uint32_t value, uint32_t distance) {
  return __nvvm_shfl_sync_down_i32(0xffffffffu, value, distance, kWarp - 1);
}
#endif

DEJA_GPU double FromLaneAbove(double value, uint32_t distance) {
  const auto bits = __builtin_bit_cast(uint64_t, value);
  const uint32_t low = FromLaneAbove(static_cast<uint32_t>(bits), distance);
  const uint32_t high = FromLaneAbove(static_cast<uint32_t>(bits >> 32), distance);
  return __builtin_bit_cast(double, uint64_t{high} << 32 | low);
}

template <typename T>
DEJA_GPU void RunKernel(const Work& work) {
  const uint64_t thread = uint64_t{ThreadBlock()} * kThreads + ThreadInBlock();
  Record record = RunThread<T>(work, thread, uint64_t{ThreadBlocks()} * kThreads);
  if constexpr (!__is_same(T, Raw)) {
    DEJA_GPU_UNROLL
    for (uint32_t distance = kWarp / 2; distance != 0; distance /= 2)
      Merge(record, {FromLaneAbove(record.sum, distance), FromLaneAbove(record.squares, distance),
                     FromLaneAbove(record.low, distance), FromLaneAbove(record.high, distance),
                     FromLaneAbove(record.nans, distance), FromLaneAbove(record.infs, distance)});
  }
  unsigned char* to = thread % kWarp == 0 ? RecordOf(work, thread) : nullptr;
  if (to != nullptr) __builtin_memcpy(__builtin_assume_aligned(to, 8), &record, sizeof record);
}

}  // namespace
}  // namespace deja::digest::gpu

#define DEJA_KERNEL(name, type, number)                                                \
  extern "C" __attribute__((global)) __attribute__((launch_bounds(128, 8))) void name( \
      const unsigned char* data, uint64_t blocks, unsigned char* results,              \
      const unsigned char* tail, uint64_t tail_bytes) {                                \
    deja::digest::gpu::RunKernel<deja::digest::gpu::type>(                             \
        {data, blocks, results, tail, tail_bytes});                                    \
  }
DEJA_DIGEST_KERNELS(DEJA_KERNEL)
