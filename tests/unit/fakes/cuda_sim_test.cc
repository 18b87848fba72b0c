// The simulated driver is as asynchronous, and as strict, as the tests on it need it to be.
#include "tests/fakes/cuda/cuda_sim.h"
#include "tests/support/expected_leaks.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <thread>

// What a driver hands out lives as long as the process, unless it is given back.
DEJA_EXPECTED_LEAKS("leak:libcuda.so\n")

namespace {

CUdeviceptr Address(const void* pointer) {
  return reinterpret_cast<uintptr_t>(pointer);
}

void AddOne(void** params) {
  uint64_t address = 0;
  uint64_t count = 0;
  std::memcpy(&address, params[0], sizeof address);
  std::memcpy(&count, params[1], sizeof count);
  auto* values = static_cast<int*>(cusim_backing(reinterpret_cast<void*>(address)));
  for (uint64_t i = 0; i < count; ++i) ++values[i];
}
constexpr cusim_kernel kKernels[] = {{"add_one", 2, &AddOne}, {nullptr, 0, nullptr}};

class CudaSimTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(cuInit(0), CUDA_SUCCESS);
    ASSERT_EQ(cuDevicePrimaryCtxRetain(&context_, 0), CUDA_SUCCESS);
    ASSERT_EQ(cuCtxSetCurrent(context_), CUDA_SUCCESS);
    ASSERT_EQ(cuStreamCreate(&stream_, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
    CUmodule module = nullptr;
    ASSERT_EQ(cuModuleLoadData(&module, kKernels), CUDA_SUCCESS);
    ASSERT_EQ(cuModuleGetFunction(&add_one_, module, "add_one"), CUDA_SUCCESS);
  }
  void TearDown() override { cuCtxSetCurrent(nullptr); }

  // `count` ints of device memory, all zero.
  static CUdeviceptr Ints(size_t count) {
    CUdeviceptr memory = 0;
    EXPECT_EQ(cuMemAlloc_v2(&memory, count * sizeof(int)), CUDA_SUCCESS);
    return memory;
  }
  CUresult Launch(CUdeviceptr memory, uint64_t count, CUstream stream) const {
    void* params[] = {&memory, &count};
    return cuLaunchKernel(add_one_, 1, 1, 1, 1, 1, 1, 0, stream, params, nullptr);
  }
  static int Value(CUdeviceptr memory, CUstream stream) {
    int value = -1;
    EXPECT_EQ(cuMemcpyAsync(Address(&value), memory, sizeof value, stream), CUDA_SUCCESS);
    return value;
  }
  // Work that lasts until `go` is set.
  static void Hold(CUstream stream, std::atomic<bool>& go) {
    cuLaunchHostFunc(
        stream,
        [](void* flag) {
          while (!static_cast<std::atomic<bool>*>(flag)->load()) std::this_thread::yield();
        },
        &go);
  }

  CUcontext context_ = nullptr;
  CUstream stream_ = nullptr;
  CUfunction add_one_ = nullptr;
};

TEST_F(CudaSimTest, WorkIsDoneLaterAndInOrder) {
  CUdeviceptr memory = Ints(1);
  std::atomic<bool> go{false};
  Hold(stream_, go);
  for (int i = 0; i < 5; ++i) ASSERT_EQ(Launch(memory, 1, stream_), CUDA_SUCCESS);
  CUevent event = nullptr;
  ASSERT_EQ(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING), CUDA_SUCCESS);
  ASSERT_EQ(cuEventRecord(event, stream_), CUDA_SUCCESS);
  EXPECT_EQ(cuEventQuery(event), CUDA_ERROR_NOT_READY);
  go = true;
  EXPECT_EQ(Value(memory, stream_), 5);
  EXPECT_EQ(cuEventQuery(event), CUDA_SUCCESS);
}

TEST_F(CudaSimTest, TheProcessorCannotTouchDeviceMemory) {
  auto* memory = reinterpret_cast<volatile int*>(static_cast<uintptr_t>(Ints(1)));
  EXPECT_DEATH(std::_Exit(*memory), "");
}

TEST_F(CudaSimTest, PointersKnowWhatTheyPointTo) {
  auto kind = [](CUdeviceptr address) {
    unsigned int type = 99;
    unsigned int managed = 99;
    CUpointer_attribute attributes[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                                        CU_POINTER_ATTRIBUTE_IS_MANAGED};
    void* values[] = {&type, &managed};
    EXPECT_EQ(cuPointerGetAttributes(2, attributes, values, address), CUDA_SUCCESS);
    return std::array<unsigned int, 2>{type, managed};
  };
  using Kind = std::array<unsigned int, 2>;
  void* pinned = nullptr;
  CUdeviceptr managed = 0;
  int pageable = 0;
  ASSERT_EQ(cuMemHostAlloc(&pinned, 64, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuMemAllocManaged(&managed, 64, CU_MEM_ATTACH_GLOBAL), CUDA_SUCCESS);
  EXPECT_EQ(kind(Ints(4) + 12), (Kind{CU_MEMORYTYPE_DEVICE, 0}));
  EXPECT_EQ(kind(managed), (Kind{CU_MEMORYTYPE_DEVICE, 1}));
  EXPECT_EQ(kind(Address(pinned)), (Kind{CU_MEMORYTYPE_HOST, 0}));
  EXPECT_EQ(kind(Address(&pageable)), (Kind{0, 0}));
}

TEST_F(CudaSimTest, EventsOrderStreams) {
  CUstream other = nullptr;
  CUevent event = nullptr;
  ASSERT_EQ(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
  ASSERT_EQ(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING), CUDA_SUCCESS);
  CUdeviceptr memory = Ints(1);
  std::atomic<bool> go{false};
  Hold(stream_, go);
  Launch(memory, 1, stream_);
  cuEventRecord(event, stream_);
  EXPECT_EQ(Value(memory, other), 0);  // nothing orders it yet
  ASSERT_EQ(cuStreamWaitEvent(other, event, 0), CUDA_SUCCESS);
  go = true;
  EXPECT_EQ(Value(memory, other), 1);
}

TEST_F(CudaSimTest, ADeviceWaitsForStreamsThatDoNotBlock) {
  CUdeviceptr memory = Ints(1);
  std::atomic<bool> go{false};
  CUstream other = nullptr;
  ASSERT_EQ(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
  Hold(other, go);
  ASSERT_EQ(Launch(memory, 1, other), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamQuery(other), CUDA_ERROR_NOT_READY);
  go = true;
  ASSERT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamQuery(other), CUDA_SUCCESS);
  EXPECT_EQ(Value(memory, stream_), 1);
}

TEST_F(CudaSimTest, EventsKnowWhenTheyWereReached) {
  CUevent first = nullptr;
  CUevent second = nullptr;
  ASSERT_EQ(cuEventCreate(&first, CU_EVENT_DEFAULT), CUDA_SUCCESS);
  ASSERT_EQ(cuEventCreate(&second, CU_EVENT_DEFAULT), CUDA_SUCCESS);
  float ms = -1;
  EXPECT_EQ(cuEventElapsedTime(&ms, first, second), CUDA_ERROR_INVALID_HANDLE);
  std::atomic<bool> go{false};
  ASSERT_EQ(cuEventRecord(first, stream_), CUDA_SUCCESS);
  Hold(stream_, go);
  ASSERT_EQ(cuEventRecord(second, stream_), CUDA_SUCCESS);
  ASSERT_EQ(cuEventSynchronize(first), CUDA_SUCCESS);
  EXPECT_EQ(cuEventElapsedTime(&ms, first, second), CUDA_ERROR_NOT_READY);
  go = true;
  ASSERT_EQ(cuEventSynchronize(second), CUDA_SUCCESS);
  ASSERT_EQ(cuEventElapsedTime(&ms, first, second), CUDA_SUCCESS);
  EXPECT_GE(ms, 0);
}

TEST_F(CudaSimTest, MemoryIsFilledInTheOrderOfTheStream) {
  CUdeviceptr memory = Ints(1);
  ASSERT_EQ(cuMemsetD8Async(memory, 1, sizeof(int), stream_), CUDA_SUCCESS);
  ASSERT_EQ(Launch(memory, 1, stream_), CUDA_SUCCESS);
  EXPECT_EQ(Value(memory, stream_), 0x01010102);
}

TEST_F(CudaSimTest, TheLegacyStreamWaitsForStreamsThatBlockAndTheyForIt) {
  CUstream blocking = nullptr;
  ASSERT_EQ(cuStreamCreate(&blocking, CU_STREAM_DEFAULT), CUDA_SUCCESS);
  CUdeviceptr memory = Ints(1);
  // Two streams that block are not ordered with each other, only through the legacy one.
  for (CUstream stream : {blocking, CUstream{nullptr}, blocking, CU_STREAM_LEGACY,
                          CU_STREAM_PER_THREAD, CUstream{nullptr}})
    ASSERT_EQ(Launch(memory, 1, stream), CUDA_SUCCESS);
  EXPECT_EQ(Value(memory, blocking), 6);
}

TEST_F(CudaSimTest, AGraphRunsWhatWasCapturedAtEachLaunch) {
  CUdeviceptr memory = Ints(1);
  CUgraph graph = nullptr;
  CUgraphExec exec = nullptr;
  ASSERT_EQ(cuStreamBeginCapture_v2(stream_, CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_SUCCESS);
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  ASSERT_EQ(cuStreamIsCapturing(stream_, &status), CUDA_SUCCESS);
  EXPECT_EQ(status, CU_STREAM_CAPTURE_STATUS_ACTIVE);
  Launch(memory, 1, stream_);
  ASSERT_EQ(cuStreamEndCapture(stream_, &graph), CUDA_SUCCESS);
  ASSERT_EQ(cuGraphInstantiateWithFlags(&exec, graph, 0), CUDA_SUCCESS);
  EXPECT_EQ(Value(memory, stream_), 0);
  for (int i = 0; i < 3; ++i) ASSERT_EQ(cuGraphLaunch(exec, stream_), CUDA_SUCCESS);
  EXPECT_EQ(Value(memory, stream_), 3);
}

TEST_F(CudaSimTest, LaunchesOfOneExecutableGraphRunOneAfterTheOther) {
  CUdeviceptr memory = Ints(1);
  CUgraph graph = nullptr;
  CUgraphExec exec = nullptr;
  CUstream other = nullptr;
  std::atomic<bool> go{false};
  ASSERT_EQ(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
  ASSERT_EQ(cuStreamBeginCapture_v2(stream_, CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_SUCCESS);
  Hold(stream_, go);
  Launch(memory, 1, stream_);
  ASSERT_EQ(cuStreamEndCapture(stream_, &graph), CUDA_SUCCESS);
  ASSERT_EQ(cuGraphInstantiateWithFlags(&exec, graph, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuGraphLaunch(exec, stream_), CUDA_SUCCESS);
  ASSERT_EQ(cuGraphLaunch(exec, other), CUDA_SUCCESS);
  go = true;
  // The other stream's launch is the second one.
  EXPECT_EQ(Value(memory, other), 2);
}

TEST_F(CudaSimTest, AnExternalEventOrdersGraphsAsTheyAreLaunched) {
  CUdeviceptr memory = Ints(1);
  CUevent event = nullptr;
  CUstream other = nullptr;
  CUgraphExec first = nullptr;
  CUgraphExec second = nullptr;
  CUgraph graph = nullptr;
  std::atomic<bool> go{false};
  ASSERT_EQ(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
  ASSERT_EQ(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING), CUDA_SUCCESS);
  EXPECT_EQ(cuEventRecordWithFlags(event, stream_, CU_EVENT_RECORD_EXTERNAL),
            CUDA_ERROR_INVALID_VALUE);
  ASSERT_EQ(cuStreamBeginCapture_v2(stream_, CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_SUCCESS);
  Hold(stream_, go);
  Launch(memory, 1, stream_);
  ASSERT_EQ(cuEventRecordWithFlags(event, stream_, CU_EVENT_RECORD_EXTERNAL), CUDA_SUCCESS);
  ASSERT_EQ(cuStreamEndCapture(stream_, &graph), CUDA_SUCCESS);
  ASSERT_EQ(cuGraphInstantiateWithFlags(&first, graph, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuStreamBeginCapture_v2(stream_, CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_SUCCESS);
  ASSERT_EQ(cuStreamWaitEvent(stream_, event, CU_EVENT_WAIT_EXTERNAL), CUDA_SUCCESS);
  Launch(memory, 1, stream_);
  ASSERT_EQ(cuStreamEndCapture(stream_, &graph), CUDA_SUCCESS);
  ASSERT_EQ(cuGraphInstantiateWithFlags(&second, graph, 0), CUDA_SUCCESS);
  // Nothing has been recorded: it does not wait.
  ASSERT_EQ(cuGraphLaunch(second, other), CUDA_SUCCESS);
  EXPECT_EQ(Value(memory, other), 1);
  ASSERT_EQ(cuGraphLaunch(first, stream_), CUDA_SUCCESS);
  ASSERT_EQ(cuGraphLaunch(second, other), CUDA_SUCCESS);
  go = true;
  EXPECT_EQ(Value(memory, other), 3);
}

TEST_F(CudaSimTest, ABodyOfAConditionalNodeTakesNoHostFunction) {
  for (bool host : {false, true}) {
    CUdeviceptr memory = Ints(1);
    CUgraph graph = nullptr;
    CUgraph clone = nullptr;
    CUgraphNode node = nullptr;
    CUgraphExec exec = nullptr;
    CUgraphNodeParams params{};
    std::atomic<bool> go{true};
    ASSERT_EQ(cuStreamBeginCapture_v2(stream_, CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_SUCCESS);
    ASSERT_EQ(cuStreamEndCapture(stream_, &graph), CUDA_SUCCESS);
    params.type = CU_GRAPH_NODE_TYPE_CONDITIONAL;
    params.conditional.size = 1;
    ASSERT_EQ(cuGraphConditionalHandleCreate(&params.conditional.handle, graph, context_, 1,
                                             CU_GRAPH_COND_ASSIGN_DEFAULT),
              CUDA_SUCCESS);
    ASSERT_EQ(cuGraphAddNode_v2(&node, graph, nullptr, nullptr, 0, &params), CUDA_SUCCESS);
    CUgraph body = params.conditional.phGraph_out[0];
    ASSERT_EQ(cuStreamBeginCaptureToGraph(stream_, body, nullptr, nullptr, 0,
                                          CU_STREAM_CAPTURE_MODE_GLOBAL),
              CUDA_SUCCESS);
    Launch(memory, 1, stream_);
    if (host) Hold(stream_, go);
    ASSERT_EQ(cuStreamEndCapture(stream_, &body), CUDA_SUCCESS);
    EXPECT_EQ(cuGraphClone(&clone, graph), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(cuGraphInstantiateWithFlags(&exec, graph, 0),
              host ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS);
    if (host) continue;
    CUgraphExec again = nullptr;
    EXPECT_EQ(cuGraphInstantiateWithFlags(&again, graph, 0), CUDA_ERROR_INVALID_VALUE);
    for (int i = 0; i < 2; ++i) ASSERT_EQ(cuGraphLaunch(exec, stream_), CUDA_SUCCESS);
    EXPECT_EQ(Value(memory, stream_), 2);
  }
}

TEST_F(CudaSimTest, AnUpdateIsOfLaterLaunches) {
  CUdeviceptr memory = Ints(2);
  const CUdeviceptr second = memory + sizeof(int);
  CUgraph graphs[3] = {};
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(cuStreamBeginCapture_v2(stream_, CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_SUCCESS);
    Launch(i == 0 ? memory : second, 1, stream_);
    if (i == 2) Launch(memory, 1, stream_);
    ASSERT_EQ(cuStreamEndCapture(stream_, &graphs[i]), CUDA_SUCCESS);
  }
  CUgraphExec exec = nullptr;
  CUgraphExecUpdateResultInfo info{};
  ASSERT_EQ(cuGraphInstantiateWithFlags(&exec, graphs[0], 0), CUDA_SUCCESS);
  ASSERT_EQ(cuGraphLaunch(exec, stream_), CUDA_SUCCESS);
  ASSERT_EQ(cuGraphExecUpdate_v2(exec, graphs[1], &info), CUDA_SUCCESS);
  for (int i = 0; i < 2; ++i) ASSERT_EQ(cuGraphLaunch(exec, stream_), CUDA_SUCCESS);
  EXPECT_EQ(Value(memory, stream_), 1);
  EXPECT_EQ(Value(second, stream_), 2);
  EXPECT_EQ(cuGraphExecUpdate_v2(exec, graphs[2], &info), CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
  EXPECT_EQ(info.result, CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED);
  ASSERT_EQ(cuGraphLaunch(exec, stream_), CUDA_SUCCESS);
  ASSERT_EQ(cuGraphExecDestroy(exec), CUDA_SUCCESS);
  EXPECT_EQ(cuGraphLaunch(exec, stream_), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(Value(second, stream_), 3);
}

TEST_F(CudaSimTest, ACloneIsAGraphOfItsOwn) {
  CUdeviceptr memory = Ints(1);
  CUgraph graph = nullptr;
  CUgraph clone = nullptr;
  CUgraphExec exec = nullptr;
  ASSERT_EQ(cuStreamBeginCapture_v2(stream_, CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_SUCCESS);
  Launch(memory, 1, stream_);
  ASSERT_EQ(cuStreamEndCapture(stream_, &graph), CUDA_SUCCESS);
  ASSERT_EQ(cuGraphClone(&clone, graph), CUDA_SUCCESS);
  ASSERT_EQ(cuGraphDestroy(graph), CUDA_SUCCESS);
  EXPECT_EQ(cuGraphInstantiateWithFlags(&exec, graph, 0), CUDA_ERROR_INVALID_VALUE);
  ASSERT_EQ(cuGraphInstantiateWithFlags(&exec, clone, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuGraphLaunch(exec, stream_), CUDA_SUCCESS);
  EXPECT_EQ(Value(memory, stream_), 1);
}

TEST_F(CudaSimTest, ACallThatBreaksACaptureIsSeen) {
  const int broken = cusim_broken_captures();
  CUevent event = nullptr;
  CUgraph graph = nullptr;
  ASSERT_EQ(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING), CUDA_SUCCESS);
  ASSERT_EQ(cuStreamBeginCapture_v2(stream_, CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_SUCCESS);
  EXPECT_EQ(cuEventQuery(event), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  EXPECT_EQ(cuStreamEndCapture(stream_, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  EXPECT_EQ(cusim_broken_captures(), broken + 1);
  ASSERT_EQ(cuStreamBeginCapture_v2(stream_, CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_SUCCESS);
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
  cuThreadExchangeStreamCaptureMode(&mode);
  EXPECT_EQ(cuEventQuery(event), CUDA_SUCCESS);
  cuThreadExchangeStreamCaptureMode(&mode);
  EXPECT_EQ(cuStreamEndCapture(stream_, &graph), CUDA_SUCCESS);
}

TEST_F(CudaSimTest, AnEventBelongsToItsContext) {
  CUcontext second = nullptr;
  CUevent event = nullptr;
  ASSERT_EQ(cuDevicePrimaryCtxRetain(&second, 1), CUDA_SUCCESS);
  ASSERT_EQ(cuCtxPushCurrent_v2(second), CUDA_SUCCESS);
  ASSERT_EQ(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING), CUDA_SUCCESS);
  ASSERT_EQ(cuCtxPopCurrent_v2(nullptr), CUDA_SUCCESS);
  EXPECT_EQ(cuEventRecord(event, stream_), CUDA_ERROR_INVALID_HANDLE);
}

}  // namespace
