// The simulated driver's modules, libraries and kernels.
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string>
#include <vector>

#include "tests/fakes/cuda/kernels/sim_digest.h"
#include "tests/fakes/cuda/kernels/sim_digits.h"
#include "tests/fakes/cuda/sim_driver.h"
#include "tests/fakes/cuda/sim_gate.h"
#include "tests/fakes/cuda/sim_graph.h"
#include "tests/fakes/cuda/sim_habits.h"
#include "tests/fakes/cuda/sim_memory.h"
#include "tests/fakes/cuda/sim_stream.h"

#pragma GCC visibility push(default)
#include "tests/fakes/cuda/cuda_sim.h"
#pragma GCC visibility pop

struct CUmod_st {
  const cusim_kernel* kernels;  // null: it is PTX
  std::string ptx;
  void* memory = nullptr;  // of the device, that the code is in
  std::vector<void*> of_kernels{};
};
struct CUfunc_st {
  const cusim_kernel* kernel;
  const cusim::DigestKernel* digest = nullptr;  // in its place
  cusim::DigitsKernel digits = nullptr;         // or this
  CUmodule module = nullptr;
  bool launched = false;
};

namespace {

// What a launch with these parameters does; null: it cannot be.
std::function<void()> KernelWork(CUfunction function, unsigned int grid, unsigned int threads,
                                 void** params) {
  if (function->digest != nullptr)
    return cusim::DigestWork(*function->digest, grid, threads, params);
  if (function->digits != nullptr) return function->digits(params);
  std::vector<uint64_t> words(function->kernel->params);
  for (size_t i = 0; i < words.size(); ++i) std::memcpy(&words[i], params[i], sizeof words[i]);
  return [function, words]() mutable {
    std::vector<void*> pointers;
    pointers.reserve(words.size());
    for (uint64_t& word : words) pointers.push_back(&word);
    function->kernel->run(pointers.data());
  };
}

CUresult Load(CUmodule* module, const void* image) {
  if (CUresult result = cusim::CheckUnsafeCall(); result != CUDA_SUCCESS) return result;
  CUcontext context = cusim::Current();
  if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  const char* taken = std::getenv("CUDA_SIM_PTX");
  const bool is_ptx = cusim::IsPtx(image);
  if (is_ptx) cusim::TranslatingHabits();
  if (is_ptx && taken != nullptr && std::strcmp(taken, "no") == 0) return CUDA_ERROR_INVALID_PTX;
  void* memory = nullptr;
  if (const uint64_t bytes = cusim::Setting("CUDA_SIM_MODULE"); bytes != 0) {
    memory = cusim::Allocate(cusim::Memory::kDevice, bytes, context->device);
    if (memory == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  }
  if (is_ptx)
    *module = new CUmod_st{nullptr, static_cast<const char*>(image), memory};
  else
    *module = new CUmod_st{static_cast<const cusim_kernel*>(image), {}, memory};
  return CUDA_SUCCESS;
}

// What a kernel needs of the device when it is launched first.
CUresult Prepare(CUfunction function) {
  static const uint64_t bytes = cusim::Setting("CUDA_SIM_KERNEL");
  if (bytes == 0) return CUDA_SUCCESS;
  static std::mutex preparing;
  std::lock_guard hold(preparing);
  CUcontext context = cusim::Current();
  if (function->launched || context == nullptr) return CUDA_SUCCESS;
  void* memory = cusim::Allocate(cusim::Memory::kDevice, bytes, context->device);
  if (memory == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  function->module->of_kernels.push_back(memory);
  function->launched = true;
  return CUDA_SUCCESS;
}

CUresult Unload(CUmodule module) {
  if (module->memory != nullptr) cusim::Free(module->memory);
  for (void* memory : module->of_kernels) cusim::Free(memory);
  delete module;
  return CUDA_SUCCESS;
}

}  // namespace

extern "C" {

CUresult cuModuleLoadData(CUmodule* module, const void* image) {
  const cusim::ApiCall call;
  return Load(module, image);
}

CUresult cuModuleLoadDataEx(CUmodule* module, const void* image, unsigned int, CUjit_option*,
                            void**) {
  const cusim::ApiCall call;
  return Load(module, image);
}

CUresult cuModuleUnload(CUmodule module) {
  const cusim::ApiCall call;
  return Unload(module);
}

// A library is a module that is loaded at once.
CUresult cuLibraryLoadData(CUlibrary* library, const void* image, CUjit_option*, void**,
                           unsigned int, CUlibraryOption*, void**, unsigned int) {
  const cusim::ApiCall call;
  CUmodule module = nullptr;
  const CUresult result = Load(&module, image);
  *library = reinterpret_cast<CUlibrary>(module);
  return result;
}

CUresult cuLibraryUnload(CUlibrary library) {
  const cusim::ApiCall call;
  return Unload(reinterpret_cast<CUmodule>(library));
}

CUresult cuModuleGetFunction(CUfunction* function, CUmodule module, const char* name) {
  const cusim::ApiCall call;
  if (module->kernels == nullptr) {
    const cusim::DigestKernel* digest = cusim::FindDigestKernel(module->ptx, name);
    cusim::DigitsKernel digits = cusim::FindDigitsKernel(module->ptx, name);
    if (digest == nullptr && digits == nullptr) return CUDA_ERROR_NOT_FOUND;
    *function = new CUfunc_st{nullptr, digest, digits, module};
    return CUDA_SUCCESS;
  }
  for (const cusim_kernel* kernel = module->kernels; kernel->name != nullptr; ++kernel) {
    if (std::strcmp(kernel->name, name) != 0) continue;
    *function = new CUfunc_st{kernel, nullptr, nullptr, module};
    return CUDA_SUCCESS;
  }
  return CUDA_ERROR_NOT_FOUND;
}

CUresult cuLaunchKernel(CUfunction function, unsigned int grid, unsigned int, unsigned int,
                        unsigned int threads, unsigned int, unsigned int, unsigned int,
                        CUstream stream, void** params, void**) {
  const cusim::ApiCall call;
  if (CUresult result = Prepare(function); result != CUDA_SUCCESS) return result;
  std::function<void()> work = KernelWork(function, grid, threads, params);
  if (work == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return cusim::Enqueue(stream, std::move(work), CU_GRAPH_NODE_TYPE_KERNEL);
}

CUresult cuGraphExecKernelNodeSetParams_v2(CUgraphExec exec, CUgraphNode node,
                                           const CUDA_KERNEL_NODE_PARAMS_v2* params) {
  const cusim::ApiCall call;
  std::function<void()> work =
      KernelWork(params->func, params->gridDimX, params->blockDimX, params->kernelParams);
  if (work == nullptr || node->type != CU_GRAPH_NODE_TYPE_KERNEL) return CUDA_ERROR_INVALID_VALUE;
  return cusim::SetNode(exec, node->place, {node->type, std::move(work)});
}

}  // extern "C"
