// Training as NCCL programs do it: buffers on the device, kernels and collectives on streams, two
// communicators, groups, in place and not, and every buffer overwritten by the next kernel without
// waiting for anything. What the steps consumed and what they computed is one line.
//
//   --unseeded             each step's seed is from random(4)
//   --steps=N --count=N    how many, and of how many floats
//   --legacy               everything on the legacy default stream
//   --capture              the last step's all-reduce is captured into a graph, and launched twice
//   --fault=N              one element of the input of step N is changed (on rank 1)
//   --end=crash            a bad access after the last step, without waiting for the streams
#include <sys/random.h>

#include <cstdint>
#include <cstring>
#include <vector>

#include "tests/e2e/apps/record/job.h"
#include "tests/fakes/cuda/cuda_sim.h"

#define CUDA_CHECK(call)                                                             \
  do {                                                                               \
    CUresult cuda_result_ = (call);                                                  \
    if (cuda_result_ != CUDA_SUCCESS) {                                              \
      fprintf(stderr, "rank %d: %s returned %d\n", job_rank(), #call, cuda_result_); \
      exit(1);                                                                       \
    }                                                                                \
  } while (0)

namespace {

template <typename T>
T Param(void** params, int i) {
  T value{};
  std::memcpy(&value, params[i], sizeof value);
  return value;
}

float* Floats(void** params, int i) {
  return static_cast<float*>(cusim_backing(Param<void*>(params, i)));
}

// out[i] = a value that depends on seed and i
void Fill(void** params) {
  float* out = Floats(params, 0);
  const auto count = Param<uint64_t>(params, 1);
  const auto seed = Param<uint64_t>(params, 2);
  for (uint64_t i = 0; i < count; ++i)
    out[i] = static_cast<float>((i * 2654435761u + seed * 40503u) % 1009) / 7;
}

// to[i] += from[i] / 3
void Add(void** params) {
  float* to = Floats(params, 0);
  const float* from = Floats(params, 1);
  const auto count = Param<uint64_t>(params, 2);
  for (uint64_t i = 0; i < count; ++i) to[i] += from[i] / 3;
}

constexpr cusim_kernel kKernels[] = {{"fill", 3, &Fill}, {"add", 3, &Add}, {nullptr, 0, nullptr}};

struct Device {
  CUfunction fill = nullptr;
  CUfunction add = nullptr;

  Device() {
    int devices = 0;
    CUdevice device = 0;
    CUcontext context = nullptr;
    CUmodule module = nullptr;
    CUDA_CHECK(cuInit(0));
    CUDA_CHECK(cuDeviceGetCount(&devices));
    CUDA_CHECK(cuDeviceGet(&device, job_rank() % devices));
    CUDA_CHECK(cuDevicePrimaryCtxRetain(&context, device));
    CUDA_CHECK(cuCtxSetCurrent(context));
    CUDA_CHECK(cuModuleLoadData(&module, kKernels));
    CUDA_CHECK(cuModuleGetFunction(&fill, module, "fill"));
    CUDA_CHECK(cuModuleGetFunction(&add, module, "add"));
  }

  static CUdeviceptr Floats(size_t count) {
    CUdeviceptr memory = 0;
    CUDA_CHECK(cuMemAlloc_v2(&memory, count * sizeof(float)));
    return memory;
  }
  void Fill(CUdeviceptr out, uint64_t count, uint64_t seed, CUstream stream) const {
    void* params[] = {&out, &count, &seed};
    CUDA_CHECK(cuLaunchKernel(fill, 1, 1, 1, 1, 1, 1, 0, stream, params, nullptr));
  }
  void Add(CUdeviceptr to, CUdeviceptr from, uint64_t count, CUstream stream) const {
    void* params[] = {&to, &from, &count};
    CUDA_CHECK(cuLaunchKernel(add, 1, 1, 1, 1, 1, 1, 0, stream, params, nullptr));
  }
};

cudaStream_t ForNccl(CUstream stream) {
  return reinterpret_cast<cudaStream_t>(stream);
}

void* Buffer(CUdeviceptr memory) {
  return reinterpret_cast<void*>(static_cast<uintptr_t>(memory));
}

bool Has(int argc, char** argv, const char* flag) {
  for (int i = 1; i < argc; ++i)
    if (strcmp(argv[i], flag) == 0) return true;
  return false;
}

}  // namespace

int main(int argc, char** argv) {
  const int steps = job_number(argc, argv, "--steps", 5);
  const auto count = static_cast<size_t>(job_number(argc, argv, "--count", 3000));
  const int fault = job_number(argc, argv, "--fault", 0);
  const bool unseeded = Has(argc, argv, "--unseeded");
  const auto ranks = static_cast<size_t>(job_size());
  const Device device;
  CUstream stream = nullptr;
  CUstream second = nullptr;
  CUevent ready = nullptr;
  if (!Has(argc, argv, "--legacy")) {
    CUDA_CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    CUDA_CHECK(cuStreamCreate(&second, CU_STREAM_NON_BLOCKING));
  }
  CUDA_CHECK(cuEventCreate(&ready, CU_EVENT_DISABLE_TIMING));
  ncclComm_t comm = job_communicator();
  ncclComm_t other = nullptr;
  JOB_CHECK(ncclCommSplit(comm, 0, job_rank(), &other, nullptr));

  CUdeviceptr total = Device::Floats(count);
  CUdeviceptr data = Device::Floats(count);
  CUdeviceptr sum = Device::Floats(count);
  CUdeviceptr all = Device::Floats(count * ranks);
  CUdeviceptr came = Device::Floats(count);
  device.Fill(total, count, 0, stream);
  unsigned seeds = 0;
  auto reduce = [&] {
    JOB_CHECK(ncclAllReduce(Buffer(data), Buffer(sum), count, ncclFloat32, ncclSum, comm,
                            ForNccl(stream)));
  };
  for (int step = 1; step <= steps; ++step) {
    unsigned seed = static_cast<unsigned>(step * 100 + job_rank());
    if (unseeded && getrandom(&seed, sizeof seed, 0) != sizeof seed) return 98;
    seeds = seeds * 31 + seed;
    if (step == fault && job_rank() == 1) ++seed;
    device.Fill(data, count, seed, stream);
    reduce();
    device.Fill(data, count, seed + 1, stream);  // nothing has waited for the input to be read
    device.Add(total, sum, count, stream);
    device.Fill(sum, count, 1, stream);  // nor for the result
    // In place, on another communicator and stream.
    CUDA_CHECK(cuEventRecord(ready, stream));
    CUDA_CHECK(cuStreamWaitEvent(second, ready, 0));
    JOB_CHECK(ncclAllReduce(Buffer(data), Buffer(data), count, ncclFloat32, ncclMax, other,
                            ForNccl(second)));
    device.Add(total, data, count, second);
    CUDA_CHECK(cuEventRecord(ready, second));
    CUDA_CHECK(cuStreamWaitEvent(stream, ready, 0));
    // A group: a ring of sends, and a collective behind it.
    const int next = (job_rank() + 1) % job_size();
    const int previous = (job_rank() + job_size() - 1) % job_size();
    JOB_CHECK(ncclGroupStart());
    JOB_CHECK(ncclSend(Buffer(data), count, ncclFloat32, next, comm, ForNccl(stream)));
    JOB_CHECK(ncclRecv(Buffer(came), count, ncclFloat32, previous, comm, ForNccl(stream)));
    JOB_CHECK(
        ncclAllGather(Buffer(total), Buffer(all), count, ncclFloat32, other, ForNccl(stream)));
    JOB_CHECK(ncclGroupEnd());
    device.Add(total, came, count, stream);
    device.Add(total, all + count * sizeof(float) * (ranks - 1), count, stream);
    device.Fill(all, count * ranks, 2, stream);
    device.Fill(came, count, 3, stream);
    JOB_CHECK(ncclBcast(Buffer(total), count / 2, ncclFloat32, 0, comm, ForNccl(stream)));
  }
  if (Has(argc, argv, "--capture")) {
    CUgraph graph = nullptr;
    CUgraphExec exec = nullptr;
    CUDA_CHECK(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    reduce();
    device.Add(total, sum, count, stream);
    CUDA_CHECK(cuStreamEndCapture(stream, &graph));
    CUDA_CHECK(cuGraphInstantiateWithFlags(&exec, graph, 0));
    for (int i = 0; i < 2; ++i) CUDA_CHECK(cuGraphLaunch(exec, stream));
  }
  if (const char* end = job_option(argc, argv, "--end"); end != nullptr && job_rank() == 1)
    *reinterpret_cast<volatile int*>(Buffer(total)) = 1;  // the processor has no business there
  std::vector<float> result(count);
  CUDA_CHECK(cuMemcpyAsync(reinterpret_cast<uintptr_t>(result.data()), total, count * sizeof(float),
                           stream));
  CUDA_CHECK(cuStreamSynchronize(stream));
  uint64_t hash = 14695981039346656037u;
  for (float value : result) {
    uint32_t bits = 0;
    std::memcpy(&bits, &value, sizeof bits);
    hash = (hash ^ bits) * 1099511628211u;
  }
  JOB_CHECK(ncclCommDestroy(other));
  JOB_CHECK(ncclCommDestroy(comm));
  printf("rank %d of %d: seeds %08x, result %016llx\n", job_rank(), job_size(), seeds,
         static_cast<unsigned long long>(hash));
  return 0;
}
