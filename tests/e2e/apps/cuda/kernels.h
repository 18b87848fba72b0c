// The kernels of this folder's programs, twice: host functions for the simulated driver, PTX for a
// real one. What they compute is not the same to the last bit.
#ifndef DEJA_TESTS_E2E_APPS_CUDA_KERNELS_H_
#define DEJA_TESTS_E2E_APPS_CUDA_KERNELS_H_

#include <cstdint>
#include <cstring>

#include "tests/fakes/cuda/cuda_sim.h"

// Not there in a real driver.
extern "C" void* cusim_backing(const void* address) __attribute__((weak));

namespace cuda_app {

inline bool IsSimulated() {
  return &cusim_backing != nullptr;
}

template <typename T>
T Param(void** params, int i) {
  T value{};
  std::memcpy(&value, params[i], sizeof value);
  return value;
}

inline float* FloatsOf(void** params, int i) {
  return static_cast<float*>(cusim_backing(Param<void*>(params, i)));
}

// out[i] = a value that depends on seed and i
inline void FillKernel(void** params) {
  float* out = FloatsOf(params, 0);
  const auto count = Param<uint64_t>(params, 1);
  const auto seed = Param<uint64_t>(params, 2);
  for (uint64_t i = 0; i < count; ++i)
    out[i] = static_cast<float>((i * 2654435761u + seed * 40503u) % 1009) / 7;
}

// to[i] += from[i] / 3
inline void AddKernel(void** params) {
  float* to = FloatsOf(params, 0);
  const float* from = FloatsOf(params, 1);
  const auto count = Param<uint64_t>(params, 2);
  for (uint64_t i = 0; i < count; ++i) to[i] += from[i] / 3;
}

// to[i] = to[i] * 0.25 + from[i] * 0.125 + 1, which stays bounded however often it is done
inline void MixKernel(void** params) {
  float* to = FloatsOf(params, 0);
  const float* from = FloatsOf(params, 1);
  const auto count = Param<uint64_t>(params, 2);
  for (uint64_t i = 0; i < count; ++i) to[i] = to[i] * 0.25F + from[i] * 0.125F + 1;
}

inline constexpr cusim_kernel kHostKernels[] = {{"fill", 3, &FillKernel},
                                                {"add", 3, &AddKernel},
                                                {"mix", 3, &MixKernel},
                                                {nullptr, 0, nullptr}};

// Every thread of a one-dimensional grid does elements %i, %i + the number of threads, and so on,
// below %count; %to and %from are the elements' addresses.
#define CUDA_APP_REGISTERS                                \
  "  .reg .pred %done;\n"                                 \
  "  .reg .b32 %thread, %size, %block, %blocks;\n"        \
  "  .reg .b64 %i, %step, %count, %at, %to, %from, %x;\n" \
  "  .reg .b64 %to0, %from0, %seed;\n"                    \
  "  .reg .f32 %f, %g;\n"                                 \
  "  mov.u32 %thread, %tid.x;\n"                          \
  "  mov.u32 %size, %ntid.x;\n"                           \
  "  mov.u32 %block, %ctaid.x;\n"                         \
  "  mov.u32 %blocks, %nctaid.x;\n"                       \
  "  mul.wide.u32 %i, %block, %size;\n"                   \
  "  cvt.u64.u32 %x, %thread;\n"                          \
  "  add.u64 %i, %i, %x;\n"                               \
  "  mul.wide.u32 %step, %blocks, %size;\n"
#define CUDA_APP_LOOP                  \
  "next:\n"                            \
  "  setp.ge.u64 %done, %i, %count;\n" \
  "  @%done ret;\n"                    \
  "  shl.b64 %at, %i, 2;\n"            \
  "  add.u64 %to, %to0, %at;\n"
#define CUDA_APP_END           \
  "  add.u64 %i, %i, %step;\n" \
  "  bra next;\n"              \
  "}\n"
#define CUDA_APP_TWO_BUFFERS                                                     \
  "(.param .u64 to, .param .u64 from, .param .u64 count) {\n" CUDA_APP_REGISTERS \
  "  ld.param.u64 %to0, [to];\n"                                                 \
  "  ld.param.u64 %from0, [from];\n"                                             \
  "  ld.param.u64 %count, [count];\n" CUDA_APP_LOOP                              \
  "  add.u64 %from, %from0, %at;\n"                                              \
  "  ld.global.f32 %f, [%to];\n"                                                 \
  "  ld.global.f32 %g, [%from];\n"

inline constexpr char kPtx[] =
    ".version 6.0\n.target sm_60\n.address_size 64\n"
    ".visible .entry fill(.param .u64 out, .param .u64 count, .param .u64 seed) "
    "{\n" CUDA_APP_REGISTERS
    "  ld.param.u64 %to0, [out];\n"
    "  ld.param.u64 %count, [count];\n"
    "  ld.param.u64 %seed, [seed];\n"
    "  mul.lo.u64 %seed, %seed, 40503;\n" CUDA_APP_LOOP
    "  mul.lo.u64 %x, %i, 2654435761;\n"
    "  add.u64 %x, %x, %seed;\n"
    "  rem.u64 %x, %x, 1009;\n"
    "  cvt.rn.f32.u64 %f, %x;\n"
    "  div.rn.f32 %f, %f, 0f40E00000;\n"  // 7
    "  st.global.f32 [%to], %f;\n" CUDA_APP_END ".visible .entry add" CUDA_APP_TWO_BUFFERS
    "  div.rn.f32 %g, %g, 0f40400000;\n"  // 3
    "  add.rn.f32 %f, %f, %g;\n"
    "  st.global.f32 [%to], %f;\n" CUDA_APP_END ".visible .entry mix" CUDA_APP_TWO_BUFFERS
    "  mul.rn.f32 %f, %f, 0f3E800000;\n"      // 0.25
    "  fma.rn.f32 %f, %g, 0f3E000000, %f;\n"  // 0.125
    "  add.rn.f32 %f, %f, 0f3F800000;\n"      // 1
    "  st.global.f32 [%to], %f;\n" CUDA_APP_END;

#undef CUDA_APP_REGISTERS
#undef CUDA_APP_LOOP
#undef CUDA_APP_END
#undef CUDA_APP_TWO_BUFFERS

}  // namespace cuda_app

#endif  // DEJA_TESTS_E2E_APPS_CUDA_KERNELS_H_
