// A program on CUDA's runtime: kernels, copies, events and a graph around collectives. Behind every
// call it says what the runtime keeps for the thread: the last error (there is one from the start),
// the current device, the mode of captures, and whether the stream is being captured.
//
//   --unseeded   the input's seed is from random(4)
#include <sched.h>
#include <sys/random.h>

#include <cstdint>
#include <vector>

#include "tests/e2e/apps/cuda/kernels.h"
#include "tests/e2e/apps/record/job.h"
#include "tests/fakes/cuda/runtime/cudart_sim.h"

#define RUNTIME_CHECK(call)                                                             \
  do {                                                                                  \
    cudaError_t runtime_result_ = (call);                                               \
    if (runtime_result_ != cudaSuccess) {                                               \
      fprintf(stderr, "rank %d: %s returned %d\n", job_rank(), #call, runtime_result_); \
      exit(1);                                                                          \
    }                                                                                   \
  } while (0)

namespace {

constexpr size_t kCount = 3000;

// What nvcc makes of a kernel that is called: a host function of its name.
void Fill(float* /*out*/, uint64_t /*count*/, uint64_t /*seed*/) {}

void Launch(float* out, uint64_t seed, cudaStream_t stream) {
  uint64_t count = kCount;
  void* args[] = {&out, &count, &seed};
  RUNTIME_CHECK(cudaLaunchKernel(reinterpret_cast<const void*>(&Fill), {64, 1, 1}, {256, 1, 1},
                                 args, 0, stream));
}

void Say(const char* after, cudaStream_t stream) {
  int device = -1;
  cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  const cudaError_t last = cudaPeekAtLastError();
  RUNTIME_CHECK(cudaGetDevice(&device));
  RUNTIME_CHECK(cudaThreadExchangeStreamCaptureMode(&mode));
  const cudaStreamCaptureMode seen = mode;
  RUNTIME_CHECK(cudaThreadExchangeStreamCaptureMode(&mode));
  RUNTIME_CHECK(cudaStreamIsCapturing(stream, &status));
  printf("rank %d after %s: last error %d, device %d, mode %d, capturing %d\n", job_rank(), after,
         last, device, seen, status);
}

}  // namespace

int main(int argc, char** argv) {
  uint64_t seed = static_cast<uint64_t>(100 + job_rank());
  if (argc > 1 && strcmp(argv[1], "--unseeded") == 0 &&
      getrandom(&seed, sizeof seed, 0) != sizeof seed)
    return 98;
  cudartsim_register(reinterpret_cast<const void*>(&Fill), &cuda_app::kHostKernels[0]);
  int devices = 0;
  RUNTIME_CHECK(cudaGetDeviceCount(&devices));
  RUNTIME_CHECK(cudaSetDevice((job_rank() + 1) % devices));
  cudaStreamCaptureMode mode = cudaStreamCaptureModeThreadLocal;
  RUNTIME_CHECK(cudaThreadExchangeStreamCaptureMode(&mode));
  if (cudaSetDevice(devices) == cudaSuccess) return 1;  // an error that is kept

  cudaStream_t stream = nullptr;
  cudaEvent_t done = nullptr;
  void* memory = nullptr;
  void* pinned = nullptr;
  RUNTIME_CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  RUNTIME_CHECK(cudaEventCreateWithFlags(&done, cudaEventDisableTiming));
  RUNTIME_CHECK(cudaMalloc(&memory, kCount * sizeof(float)));
  RUNTIME_CHECK(cudaMallocHost(&pinned, kCount * sizeof(float)));
  auto* data = static_cast<float*>(memory);
  ncclComm_t comm = job_communicator();
  Say("ncclCommInitRank", stream);

  Launch(data, seed, stream);
  JOB_CHECK(ncclAllReduce(data, data, kCount, ncclFloat32, ncclSum, comm, stream));
  Say("ncclAllReduce", stream);
  // The stream is not the current device's.
  RUNTIME_CHECK(cudaSetDevice(job_rank() % devices));
  JOB_CHECK(ncclAllReduce(data, data, kCount, ncclFloat32, ncclMax, comm, stream));
  Say("ncclAllReduce from another device", stream);
  RUNTIME_CHECK(cudaSetDevice((job_rank() + 1) % devices));
  const int next = (job_rank() + 1) % job_size();
  const int previous = (job_rank() + job_size() - 1) % job_size();
  JOB_CHECK(ncclGroupStart());
  JOB_CHECK(ncclSend(data, kCount / 2, ncclFloat32, next, comm, stream));
  JOB_CHECK(ncclRecv(data + kCount / 2, kCount / 2, ncclFloat32, previous, comm, stream));
  JOB_CHECK(ncclGroupEnd());
  Say("ncclGroupEnd", stream);

  cudaGraph_t graph = nullptr;
  cudaGraphExec_t exec = nullptr;
  RUNTIME_CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  JOB_CHECK(ncclAllReduce(data, data, kCount, ncclFloat32, ncclAvg, comm, stream));
  Say("ncclAllReduce, captured", stream);
  RUNTIME_CHECK(cudaStreamEndCapture(stream, &graph));
  RUNTIME_CHECK(cudaGraphInstantiateWithFlags(&exec, graph, 0));
  for (int i = 0; i < 3; ++i) RUNTIME_CHECK(cudaGraphLaunch(exec, stream));
  Say("cudaGraphLaunch", stream);

  RUNTIME_CHECK(cudaMemcpyAsync(pinned, data, kCount * sizeof(float), cudaMemcpyDefault, stream));
  RUNTIME_CHECK(cudaEventRecord(done, stream));
  while (cudaEventQuery(done) == cudaErrorNotReady) sched_yield();
  RUNTIME_CHECK(cudaStreamSynchronize(stream));
  Say("cudaStreamSynchronize", stream);
  uint64_t hash = 14695981039346656037u;
  std::vector<uint32_t> words(kCount);
  memcpy(words.data(), pinned, kCount * sizeof(float));
  for (uint32_t bits : words) hash = (hash ^ bits) * 1099511628211u;
  JOB_CHECK(ncclCommDestroy(comm));
  Say("ncclCommDestroy", stream);
  RUNTIME_CHECK(cudaFree(memory));
  const cudaError_t kept = cudaGetLastError();
  printf("rank %d of %d: kept error %d, then %d, result %016llx\n", job_rank(), job_size(), kept,
         cudaGetLastError(), static_cast<unsigned long long>(hash));
  return 0;
}
