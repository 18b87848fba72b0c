// Training whose steps are CUDA graphs: captured once, launched many times. A graph has kernels, an
// all-reduce in place, a group of a ring of sends and an all-gather, and a broadcast. Between
// launches the program changes what they start from, so that no two launches compute the same.
//
//   --unseeded        each launch's seed is from random(4)
//   --launches=N      of each graph (100)
//   --count=N         floats of a buffer
//   --graphs=N        that many graphs of the same, launched in turn
//   --on-second       every second launch is on a stream that captured nothing
//   --thread-local    captured in that mode; default: global
//   --two-execs       the graph is instantiated twice; both are launched, one behind the other
//   --again           captured anew before every launch
//   --update          captured anew before every launch, and the graph that is launched updated
//   with it
//   --regrown         the same with one kernel more from launch 4 on, which no update can bring
//   --clone           every second launch is of what was instantiated from a clone
//   --destroy         graphs are destroyed once they are instantiated, and, with --again,
//   instantiated ones
//                     as soon as they are launched
//   --set-params      a kernel of the graph gets other arguments before every launch
//   --fault=N         one input of launch N is changed (on rank 1)
//   --die-at=N        SIGKILL (on every rank) when launch N is done
#include <sys/random.h>

#include <csignal>
#include <cstdint>
#include <vector>

#include "tests/e2e/apps/cuda/device.h"

using cuda_app::Buffer;
using cuda_app::Device;
using cuda_app::ForNccl;
using cuda_app::Has;

namespace {

struct Step {
  const Device& device;
  size_t count;
  ncclComm_t comm;
  CUdeviceptr data = Device::Floats(count);
  CUdeviceptr came = Device::Floats(count);
  CUdeviceptr all = Device::Floats(count * static_cast<size_t>(job_size()));
  CUdeviceptr total = Device::Floats(count);

  void Enqueue(CUstream stream, bool longer = false) const {
    if (longer) device.Fill(came, count, 7, stream);
    const int next = (job_rank() + 1) % job_size();
    const int previous = (job_rank() + job_size() - 1) % job_size();
    device.Mix(data, total, count, stream);
    JOB_CHECK(ncclAllReduce(Buffer(data), Buffer(data), count, ncclFloat32, ncclMax, comm,
                            ForNccl(stream)));
    JOB_CHECK(ncclGroupStart());
    JOB_CHECK(ncclSend(Buffer(data), count, ncclFloat32, next, comm, ForNccl(stream)));
    JOB_CHECK(ncclRecv(Buffer(came), count, ncclFloat32, previous, comm, ForNccl(stream)));
    JOB_CHECK(ncclAllGather(Buffer(data), Buffer(all), count, ncclFloat32, comm, ForNccl(stream)));
    JOB_CHECK(ncclGroupEnd());
    device.Mix(total, came, count, stream);
    device.Mix(total, all, count, stream);
    device.Fill(came, count, 1, stream);
    JOB_CHECK(
        ncclBroadcast(Buffer(total), Buffer(all), count, ncclFloat32, 0, comm, ForNccl(stream)));
    device.Mix(total, all, count, stream);
  }
};

CUgraph Captured(const Step& step, CUstream stream, CUstreamCaptureMode mode, bool longer = false) {
  CUgraph graph = nullptr;
  CUDA_CHECK(cuStreamBeginCapture_v2(stream, mode));
  step.Enqueue(stream, longer);
  CUDA_CHECK(cuStreamEndCapture(stream, &graph));
  return graph;
}

CUgraphExec Instantiated(CUgraph graph) {
  CUgraphExec exec = nullptr;
  CUDA_CHECK(cuGraphInstantiateWithFlags(&exec, graph, 0));
  return exec;
}

CUgraph Cloned(CUgraph graph) {
  CUgraph clone = nullptr;
  CUDA_CHECK(cuGraphClone(&clone, graph));
  return clone;
}

// Makes the executable graph do what `graph` does; makes a new one if there is more or less to do.
void Update(CUgraphExec& exec, CUgraph graph) {
  CUgraphExecUpdateResultInfo info{};
  const CUresult result = cuGraphExecUpdate_v2(exec, graph, &info);
  if (result == CUDA_SUCCESS) return;
  if (result != CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE) CUDA_CHECK(result);
  CUDA_CHECK(cuGraphExecDestroy(exec));
  exec = Instantiated(graph);
}

// The last kernel of the graph: total is mixed with what the broadcast has brought.
CUgraphNode LastKernel(CUgraph graph) {
  size_t count = 0;
  CUDA_CHECK(cuGraphGetNodes(graph, nullptr, &count));
  std::vector<CUgraphNode> nodes(count);
  CUDA_CHECK(cuGraphGetNodes(graph, nodes.data(), &count));
  CUgraphNode last = nullptr;
  for (CUgraphNode node : nodes) {
    CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
    CUDA_CHECK(cuGraphNodeGetType(node, &type));
    if (type == CU_GRAPH_NODE_TYPE_KERNEL) last = node;
  }
  return last;
}

// From now on it is mixed with the first `count` floats only.
void SetParams(CUgraphExec exec, CUgraphNode node, const Step& step, uint64_t count) {
  CUdeviceptr to = step.total;
  CUdeviceptr from = step.all;
  void* arguments[] = {&to, &from, &count};
  CUDA_KERNEL_NODE_PARAMS_v2 params{};
  params.func = step.device.mix;
  params.gridDimX = 64;
  params.gridDimY = params.gridDimZ = 1;
  params.blockDimX = 256;
  params.blockDimY = params.blockDimZ = 1;
  params.kernelParams = arguments;
  CUDA_CHECK(cuGraphExecKernelNodeSetParams_v2(exec, node, &params));
}

}  // namespace

int main(int argc, char** argv) {
  const int launches = job_number(argc, argv, "--launches", 100);
  const int graphs = job_number(argc, argv, "--graphs", 1);
  const int fault = job_number(argc, argv, "--fault", 0);
  const int die_at = job_number(argc, argv, "--die-at", 0);
  const auto count = static_cast<size_t>(job_number(argc, argv, "--count", 500));
  const bool unseeded = Has(argc, argv, "--unseeded");
  const bool again = Has(argc, argv, "--again");
  const CUstreamCaptureMode mode = Has(argc, argv, "--thread-local")
                                       ? CU_STREAM_CAPTURE_MODE_THREAD_LOCAL
                                       : CU_STREAM_CAPTURE_MODE_GLOBAL;
  const Device device;
  CUstream stream = nullptr;
  CUstream second = nullptr;
  CUDA_CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  CUDA_CHECK(cuStreamCreate(&second, CU_STREAM_NON_BLOCKING));
  const Step step{device, count, job_communicator()};
  device.Fill(step.total, count, 0, stream);
  device.Fill(step.data, count, 1, stream);
  CUDA_CHECK(cuStreamSynchronize(stream));

  const bool update = Has(argc, argv, "--update");
  const bool regrown = Has(argc, argv, "--regrown");
  const bool destroy = Has(argc, argv, "--destroy");
  CUgraphNode last_kernel = nullptr;
  std::vector<CUgraphExec> execs;
  for (int i = 0; i < graphs; ++i) {
    CUgraph graph = Captured(step, stream, mode);
    execs.push_back(Instantiated(graph));
    if (Has(argc, argv, "--two-execs")) execs.push_back(Instantiated(graph));
    if (Has(argc, argv, "--clone")) execs.push_back(Instantiated(Cloned(graph)));
    if (Has(argc, argv, "--set-params")) last_kernel = LastKernel(graph);
    if (destroy) CUDA_CHECK(cuGraphDestroy(graph));
  }
  unsigned seeds = 0;
  for (int launch = 1; launch <= launches; ++launch) {
    unsigned seed = static_cast<unsigned>(launch * 100 + job_rank());
    if (unseeded && getrandom(&seed, sizeof seed, 0) != sizeof seed) return 98;
    seeds = seeds * 31 + seed;
    if (launch == fault && job_rank() == 1) ++seed;
    const bool on_second = Has(argc, argv, "--on-second") && launch % 2 == 0;
    CUstream where = on_second ? second : stream;
    device.Fill(step.data, count, seed, where);
    if (again || update || regrown) {
      CUgraph graph = Captured(step, where, mode, regrown && launch >= 4);
      if (again)
        execs[0] = Instantiated(graph);
      else
        Update(execs[0], graph);
      if (destroy) CUDA_CHECK(cuGraphDestroy(graph));
    }
    CUgraphExec exec = execs[static_cast<size_t>(launch) % execs.size()];
    if (last_kernel != nullptr)
      SetParams(exec, last_kernel, step, count / static_cast<size_t>(launch % 3 + 1));
    CUDA_CHECK(cuGraphLaunch(exec, where));
    if (again && destroy) CUDA_CHECK(cuGraphExecDestroy(exec));
    // The streams are not ordered with each other otherwise.
    if (Has(argc, argv, "--on-second")) CUDA_CHECK(cuStreamSynchronize(where));
    if (launch == die_at) {
      CUDA_CHECK(cuStreamSynchronize(where));
      raise(SIGKILL);
    }
  }
  CUDA_CHECK(cuStreamSynchronize(second));
  const uint64_t hash = cuda_app::HashOf(step.total, count, stream);
  JOB_CHECK(ncclCommDestroy(step.comm));
  printf("rank %d of %d: seeds %08x, result %016llx\n", job_rank(), job_size(), seeds,
         static_cast<unsigned long long>(hash));
  return 0;
}
