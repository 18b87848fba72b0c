// A rank that has much device memory of one kind, beside a small buffer for its collectives.
//
//   --kind=K        plain, pitch, array, array3d, mipmap, pool, context2, context3, context4 (by
//   the versions of
//                   cuCtxCreate), module, modulex, library (what the simulated driver takes for
//                   them is CUDA_SIM_CONTEXT, CUDA_SIM_MODULE), kernels (CUDA_SIM_KERNEL: of a
//                   module, when they are launched first), info (plain, once cuMemGetInfo has said
//                   that there is as much; the program gives up otherwise)
//   --bytes=N       how much
//   --steps=N       each one has it anew
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <map>
#include <string>

#include "tests/e2e/apps/cuda/device.h"

using cuda_app::Buffer;
using cuda_app::ForNccl;

namespace {

constexpr size_t kCount = 1000;

using GiveBack = std::function<void()>;
using Take = std::function<GiveBack(size_t bytes, CUstream stream)>;

std::string Text(int argc, char** argv, const std::string& name) {
  for (int i = 1; i < argc; ++i)
    if (std::string(argv[i]).rfind(name + "=", 0) == 0) return argv[i] + name.size() + 1;
  return "";
}

GiveBack Plain(size_t bytes, CUstream) {
  CUdeviceptr memory = 0;
  CUDA_CHECK(cuMemAlloc_v2(&memory, bytes));
  return [=] { CUDA_CHECK(cuMemFree_v2(memory)); };
}

GiveBack Pitched(size_t bytes, CUstream) {
  CUdeviceptr memory = 0;
  size_t pitch = 0;
  CUDA_CHECK(cuMemAllocPitch_v2(&memory, &pitch, 1000, bytes / 1024, 4));
  return [=] { CUDA_CHECK(cuMemFree_v2(memory)); };
}

GiveBack Array(size_t bytes, CUstream) {
  CUarray array = nullptr;
  const CUDA_ARRAY_DESCRIPTOR_v2 what = {64, bytes / 64 / 4, CU_AD_FORMAT_FLOAT, 1};
  CUDA_CHECK(cuArrayCreate_v2(&array, &what));
  return [=] { CUDA_CHECK(cuArrayDestroy(array)); };
}

GiveBack Array3D(size_t bytes, CUstream) {
  CUarray array = nullptr;
  const CUDA_ARRAY3D_DESCRIPTOR_v2 what = {16, 16, bytes / 256 / 4, CU_AD_FORMAT_FLOAT, 1, 0};
  CUDA_CHECK(cuArray3DCreate_v2(&array, &what));
  return [=] { CUDA_CHECK(cuArrayDestroy(array)); };
}

GiveBack Mipmap(size_t bytes, CUstream) {
  CUmipmappedArray array = nullptr;
  const CUDA_ARRAY3D_DESCRIPTOR_v2 what = {64, bytes / 64 / 4, 0, CU_AD_FORMAT_FLOAT, 1, 0};
  CUDA_CHECK(cuMipmappedArrayCreate(&array, &what, 1));
  return [=] { CUDA_CHECK(cuMipmappedArrayDestroy(array)); };
}

GiveBack OfPool(size_t bytes, CUstream stream) {
  CUmemoryPool pool = nullptr;
  CUDA_CHECK(cuMemPoolCreate(&pool, nullptr));
  CUdeviceptr memory = 0;
  CUDA_CHECK(cuMemAllocFromPoolAsync(&memory, bytes, pool, stream));
  return [=] { CUDA_CHECK(cuMemFreeAsync(memory, stream)); };
}

// A context of its own, which is current only while it is made.
template <typename Create>
GiveBack Context(const Create& create) {
  CUcontext context = nullptr;
  CUcontext popped = nullptr;
  CUDA_CHECK(create(&context));
  CUDA_CHECK(cuCtxPopCurrent_v2(&popped));
  return [=] { CUDA_CHECK(cuCtxDestroy_v2(context)); };
}

CUdevice Current() {
  CUdevice device = 0;
  CUDA_CHECK(cuCtxGetDevice(&device));
  return device;
}

GiveBack Module(size_t, CUstream) {
  CUmodule module = nullptr;
  CUDA_CHECK(cuModuleLoadData(&module, cuda_app::kHostKernels));
  return [=] { CUDA_CHECK(cuModuleUnload(module)); };
}

GiveBack ModuleEx(size_t, CUstream) {
  CUmodule module = nullptr;
  CUDA_CHECK(cuModuleLoadDataEx(&module, cuda_app::kHostKernels, 0, nullptr, nullptr));
  return [=] { CUDA_CHECK(cuModuleUnload(module)); };
}

GiveBack Library(size_t, CUstream) {
  CUlibrary library = nullptr;
  CUDA_CHECK(cuLibraryLoadData(&library, cuda_app::kHostKernels, nullptr, nullptr, 0, nullptr,
                               nullptr, 0));
  return [=] { CUDA_CHECK(cuLibraryUnload(library)); };
}

// From a module of its own, since a kernel takes its memory once.
GiveBack Kernels(size_t, CUstream stream) {
  CUmodule module = nullptr;
  CUfunction fill = nullptr;
  CUDA_CHECK(cuModuleLoadData(&module, cuda_app::kHostKernels));
  CUDA_CHECK(cuModuleGetFunction(&fill, module, "fill"));
  uint64_t none = 0;
  void* params[] = {&none, &none, &none};
  CUDA_CHECK(cuLaunchKernel(fill, 1, 1, 1, 1, 1, 1, 0, stream, params, nullptr));
  return [=] { CUDA_CHECK(cuModuleUnload(module)); };
}

GiveBack Asked(size_t bytes, CUstream stream) {
  size_t free_bytes = 0;
  size_t total_bytes = 0;
  CUDA_CHECK(cuMemGetInfo_v2(&free_bytes, &total_bytes));
  if (free_bytes > total_bytes || free_bytes < bytes) {
    printf("rank %d gives up: %zu of %zu bytes are free\n", job_rank(), free_bytes, total_bytes);
    exit(3);
  }
  return Plain(bytes, stream);
}

const std::map<std::string, Take>& Kinds() {
  static const std::map<std::string, Take> kinds = {
      {"plain", Plain},
      {"pitch", Pitched},
      {"array", Array},
      {"array3d", Array3D},
      {"mipmap", Mipmap},
      {"pool", OfPool},
      {"context2",
       [](size_t, CUstream) {
         return Context([](CUcontext* made) { return cuCtxCreate_v2(made, 0, Current()); });
       }},
      {"context3",
       [](size_t, CUstream) {
         return Context(
             [](CUcontext* made) { return cuCtxCreate_v3(made, nullptr, 0, 0, Current()); });
       }},
      {"context4",
       [](size_t, CUstream) {
         return Context(
             [](CUcontext* made) { return cuCtxCreate_v4(made, nullptr, 0, Current()); });
       }},
      {"module", Module},
      {"modulex", ModuleEx},
      {"library", Library},
      {"kernels", Kernels},
      {"info", Asked},
  };
  return kinds;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string kind = Text(argc, argv, "--kind");
  const auto allocate = Kinds().find(kind.empty() ? "plain" : kind);
  if (allocate == Kinds().end()) {
    fprintf(stderr, "usage: cuda_allocations --kind=KIND [--bytes=N] [--steps=N]\n");
    return 2;
  }
  const auto bytes = static_cast<size_t>(job_number(argc, argv, "--bytes", 1 << 20));
  const int steps = job_number(argc, argv, "--steps", 3);
  const cuda_app::Device device;
  const CUdeviceptr data = cuda_app::Device::Floats(kCount);
  CUstream stream = nullptr;
  CUDA_CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  ncclComm_t comm = job_communicator();
  for (int step = 0; step < steps; ++step) {
    const GiveBack give_back = allocate->second(bytes, stream);
    device.Fill(data, kCount, static_cast<uint64_t>(step * 100 + job_rank()), stream);
    JOB_CHECK(ncclAllReduce(Buffer(data), Buffer(data), kCount, ncclFloat32, ncclSum, comm,
                            ForNccl(stream)));
    CUDA_CHECK(cuStreamSynchronize(stream));
    give_back();
  }
  const uint64_t hash = cuda_app::HashOf(data, kCount, stream);
  JOB_CHECK(ncclCommDestroy(comm));
  printf("rank %d of %d: %s, result %016llx\n", job_rank(), job_size(), allocate->first.c_str(),
         static_cast<unsigned long long>(hash));
  return 0;
}
