// A graph with a conditional node between collectives: an if with an else, a while, or a switch. A
// kernel chooses by what the first collective has brought. More is captured into the graph after
// the node. The driver's functions come from cuGetProcAddress, as CUDA's runtime has them.
//
//   --kind=N        0: if, 1: while, 2: switch
//   --launches=N    (12)
//   --inside        an all-reduce in the body, too; NCCL needs NCCL_GRAPH_MIXING_SUPPORT=0
//   --dlsym         the driver's functions come from dlsym
//   --unseeded      each launch's seed is from random(4)
#include <dlfcn.h>
#include <sys/random.h>

#include <cstdint>
#include <vector>

#include "tests/e2e/apps/cuda/device.h"

using cuda_app::Buffer;
using cuda_app::Device;
using cuda_app::FloatsOf;
using cuda_app::ForNccl;
using cuda_app::Has;
using cuda_app::Param;

namespace {

constexpr size_t kCount = 500;

// The condition is 1 + data[0] modulo `modulus`, and `counter` has it, too.
void Choose(void** params) {
  const auto value = 1 + static_cast<unsigned>(FloatsOf(params, 0)[0]) % Param<uint64_t>(params, 3);
  FloatsOf(params, 1)[0] = static_cast<float>(value);
  cusim_set_conditional(Param<CUgraphConditionalHandle>(params, 2), static_cast<unsigned>(value));
}

void CountDown(void** params) {
  float* counter = FloatsOf(params, 0);
  counter[0] -= 1;
  cusim_set_conditional(Param<CUgraphConditionalHandle>(params, 1),
                        static_cast<unsigned>(counter[0]));
}

constexpr cusim_kernel kKernels[] = {
    {"choose", 4, &Choose}, {"count_down", 2, &CountDown}, {nullptr, 0, nullptr}};

struct Driver {
  decltype(&cuGraphAddNode_v2) add_node = nullptr;
  decltype(&cuStreamBeginCaptureToGraph) capture_to = nullptr;

  explicit Driver(bool by_dlsym) {
    if (by_dlsym) {
      Find(add_node, dlsym(RTLD_DEFAULT, "cuGraphAddNode_v2"));
      Find(capture_to, dlsym(RTLD_DEFAULT, "cuStreamBeginCaptureToGraph"));
      return;
    }
    decltype(&cuGetProcAddress_v2) get = nullptr;
    Find(get, dlsym(RTLD_DEFAULT, "cuGetProcAddress_v2"));
    void* found = nullptr;
    CUDA_CHECK(get("cuGetProcAddress", &found, 12030, 0, nullptr));
    Find(get, found);
    CUDA_CHECK(get("cuGraphAddNode", &found, 12030, 0, nullptr));
    Find(add_node, found);
    CUDA_CHECK(get("cuStreamBeginCaptureToGraph", &found, 12030, 0, nullptr));
    Find(capture_to, found);
  }

 private:
  template <typename Function>
  static void Find(Function& function, void* found) {
    if (found == nullptr) exit(99);
    function = reinterpret_cast<Function>(found);
  }
};

struct Job {
  const Device& device;
  const Driver& driver;
  ncclComm_t comm;
  CUstream stream;
  CUfunction choose = nullptr;
  CUfunction count_down = nullptr;
  CUdeviceptr data = Device::Floats(kCount);
  CUdeviceptr total = Device::Floats(kCount);
  CUdeviceptr all = Device::Floats(kCount * static_cast<size_t>(job_size()));
  CUdeviceptr counter = Device::Floats(1);

  void Launch(CUfunction function, void** params) const {
    CUDA_CHECK(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, params, nullptr));
  }
  void Reduce(CUdeviceptr memory) const {
    JOB_CHECK(ncclAllReduce(Buffer(memory), Buffer(memory), kCount, ncclFloat32, ncclMax, comm,
                            ForNccl(stream)));
  }
  void CaptureTo(CUgraph graph) const {
    CUDA_CHECK(
        driver.capture_to(stream, graph, nullptr, nullptr, 0, CU_STREAM_CAPTURE_MODE_GLOBAL));
  }
};

CUgraph MakeGraph(Job& job, CUgraphConditionalNodeType kind, bool inside) {
  CUgraph graph = nullptr;
  CUDA_CHECK(cuStreamBeginCapture_v2(job.stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
  job.device.Mix(job.data, job.total, kCount, job.stream);
  job.Reduce(job.data);
  CUDA_CHECK(cuStreamEndCapture(job.stream, &graph));

  CUcontext context = nullptr;
  CUDA_CHECK(cuCtxGetCurrent(&context));
  CUgraphNodeParams params{};
  params.type = CU_GRAPH_NODE_TYPE_CONDITIONAL;
  CUDA_CONDITIONAL_NODE_PARAMS& node = params.conditional;
  CUDA_CHECK(cuGraphConditionalHandleCreate(&node.handle, graph, context, 0,
                                            CU_GRAPH_COND_ASSIGN_DEFAULT));
  node.type = kind;
  node.size = kind == CU_GRAPH_COND_TYPE_WHILE ? 1 : kind == CU_GRAPH_COND_TYPE_IF ? 2 : 3;
  node.ctx = context;
  job.CaptureTo(graph);
  uint64_t modulus = 3;
  void* chosen[] = {&job.data, &job.counter, &node.handle, &modulus};
  job.Launch(job.choose, chosen);
  CUDA_CHECK(cuStreamEndCapture(job.stream, &graph));
  CUgraphNode added = nullptr;
  CUDA_CHECK(job.driver.add_node(&added, graph, nullptr, nullptr, 0, &params));
  for (unsigned i = 0; i < node.size; ++i) {
    CUgraph body = node.phGraph_out[i];
    job.CaptureTo(body);
    for (unsigned times = 0; times <= i; ++times)
      job.device.Mix(job.total, job.data, kCount, job.stream);
    if (inside) job.Reduce(job.total);
    void* counted[] = {&job.counter, &node.handle};
    if (kind == CU_GRAPH_COND_TYPE_WHILE) job.Launch(job.count_down, counted);
    CUDA_CHECK(cuStreamEndCapture(job.stream, &body));
  }

  job.CaptureTo(graph);
  JOB_CHECK(ncclAllGather(Buffer(job.total), Buffer(job.all), kCount, ncclFloat32, job.comm,
                          ForNccl(job.stream)));
  job.device.Mix(job.total, job.all, kCount, job.stream);
  CUDA_CHECK(cuStreamEndCapture(job.stream, &graph));
  return graph;
}

}  // namespace

int main(int argc, char** argv) {
  const int launches = job_number(argc, argv, "--launches", 12);
  const auto kind = static_cast<CUgraphConditionalNodeType>(job_number(argc, argv, "--kind", 0));
  const Device device;
  const Driver driver(Has(argc, argv, "--dlsym"));
  CUstream stream = nullptr;
  CUDA_CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  Job job{device, driver, job_communicator(), stream};
  CUmodule module = nullptr;
  CUDA_CHECK(cuModuleLoadData(&module, kKernels));
  CUDA_CHECK(cuModuleGetFunction(&job.choose, module, "choose"));
  CUDA_CHECK(cuModuleGetFunction(&job.count_down, module, "count_down"));
  device.Fill(job.total, kCount, 0, stream);
  CUgraph graph = MakeGraph(job, kind, Has(argc, argv, "--inside"));
  CUgraphExec exec = nullptr;
  CUDA_CHECK(cuGraphInstantiateWithFlags(&exec, graph, 0));
  for (int launch = 1; launch <= launches; ++launch) {
    unsigned seed = static_cast<unsigned>(launch * 100 + job_rank());
    if (Has(argc, argv, "--unseeded") && getrandom(&seed, sizeof seed, 0) != sizeof seed) return 98;
    device.Fill(job.data, kCount, seed, stream);
    CUDA_CHECK(cuGraphLaunch(exec, stream));
  }
  const uint64_t hash = cuda_app::HashOf(job.total, kCount, stream);
  JOB_CHECK(ncclCommDestroy(job.comm));
  printf("rank %d of %d: result %016llx\n", job_rank(), job_size(),
         static_cast<unsigned long long>(hash));
  return 0;
}
