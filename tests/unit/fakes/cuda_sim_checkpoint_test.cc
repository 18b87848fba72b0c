// The simulated driver with devices of 1 MiB, which two processes share: limits, and process
// checkpoints as driver 570 documents them.
#include <gtest/gtest.h>
#include <sys/shm.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <thread>

#include "tests/fakes/cuda/cuda_sim.h"

namespace {

constexpr size_t kDevice = size_t{1} << 20;

// A process that takes the device's memory, and has it until a message ends it.
class OtherProcess {
 public:
  explicit OtherProcess(size_t bytes) {
    int told[2];
    int says[2];
    EXPECT_EQ(pipe(told), 0);
    EXPECT_EQ(pipe(says), 0);
    pid_ = fork();
    if (pid_ == 0) Run(told, says, bytes);
    close(told[0]);
    close(says[1]);
    tell_ = told[1];
    hear_ = says[0];
  }
  OtherProcess(const OtherProcess&) = delete;
  OtherProcess& operator=(const OtherProcess&) = delete;
  ~OtherProcess() {
    close(tell_);
    close(hear_);
    waitpid(pid_, nullptr, 0);
  }
  // Takes it, and returns what the driver says.
  CUresult Take() {
    char byte = 0;
    int result = -1;
    EXPECT_EQ(write(tell_, &byte, 1), 1);
    EXPECT_EQ(read(hear_, &result, sizeof result), static_cast<ssize_t>(sizeof result));
    return static_cast<CUresult>(result);
  }

 private:
  [[noreturn]] static void Run(const int* told, const int* says, size_t bytes) {
    close(told[1]);
    close(says[0]);
    char byte = 0;
    while (read(told[0], &byte, 1) == 1) {
      CUcontext context = nullptr;
      CUdeviceptr memory = 0;
      cuInit(0);
      cuDevicePrimaryCtxRetain(&context, 0);
      cuCtxSetCurrent(context);
      const int result = cuMemAlloc_v2(&memory, bytes);
      if (write(says[1], &result, sizeof result) != static_cast<ssize_t>(sizeof result)) break;
    }
    _exit(0);
  }

  pid_t pid_ = 0;
  int tell_ = -1;
  int hear_ = -1;
};

// Before the others: a driver does not survive a fork.
TEST(CudaSimSharedTest, ProcessesShareADevice) {
  OtherProcess first(kDevice / 4 * 3);
  OtherProcess second(kDevice / 2);
  EXPECT_EQ(first.Take(), CUDA_SUCCESS);
  EXPECT_EQ(second.Take(), CUDA_ERROR_OUT_OF_MEMORY);
}

TEST(CudaSimSharedTest, MemoryOfAnEndedProcessIsFree) {
  OtherProcess second(kDevice / 2);
  {
    OtherProcess first(kDevice / 4 * 3);
    EXPECT_EQ(first.Take(), CUDA_SUCCESS);
    EXPECT_EQ(second.Take(), CUDA_ERROR_OUT_OF_MEMORY);
  }
  EXPECT_EQ(second.Take(), CUDA_SUCCESS);
}

TEST(CudaSimSharedTest, RestoringNeedsTheRoom) {
  OtherProcess other(kDevice / 2);
  const pid_t child = fork();
  if (child == 0) {
    CUcontext context = nullptr;
    CUdeviceptr memory = 0;
    cuInit(0);
    cuDevicePrimaryCtxRetain(&context, 0);
    cuCtxSetCurrent(context);
    int wrong = cuMemAlloc_v2(&memory, kDevice / 4 * 3) == CUDA_SUCCESS ? 0 : 1;
    wrong += cuCheckpointProcessLock(getpid(), nullptr) == CUDA_SUCCESS ? 0 : 2;
    wrong += cuCheckpointProcessCheckpoint(getpid(), nullptr) == CUDA_SUCCESS ? 0 : 4;
    wrong += other.Take() == CUDA_SUCCESS ? 0 : 8;
    wrong += cuCheckpointProcessRestore(getpid(), nullptr) == CUDA_ERROR_OUT_OF_MEMORY ? 0 : 16;
    CUprocessState state = CU_PROCESS_STATE_FAILED;
    cuCheckpointProcessGetState(getpid(), &state);
    wrong += state == CU_PROCESS_STATE_CHECKPOINTED ? 0 : 32;
    _exit(wrong);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

class CudaSimCheckpointTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(cuInit(0), CUDA_SUCCESS);
    CUcontext context = nullptr;
    ASSERT_EQ(cuDevicePrimaryCtxRetain(&context, 0), CUDA_SUCCESS);
    ASSERT_EQ(cuCtxSetCurrent(context), CUDA_SUCCESS);
    ASSERT_EQ(cuStreamCreate(&stream_, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
  }

  static size_t Free() {
    size_t free_bytes = 0;
    size_t total = 0;
    EXPECT_EQ(cuMemGetInfo_v2(&free_bytes, &total), CUDA_SUCCESS);
    EXPECT_EQ(total, kDevice);
    return free_bytes;
  }
  static CUprocessState State() {
    CUprocessState state = CU_PROCESS_STATE_FAILED;
    EXPECT_EQ(cuCheckpointProcessGetState(getpid(), &state), CUDA_SUCCESS);
    return state;
  }

  CUstream stream_ = nullptr;
};

TEST_F(CudaSimCheckpointTest, ADeviceHasSoMuchMemory) {
  CUdeviceptr first = 0;
  CUdeviceptr second = 0;
  ASSERT_EQ(Free(), kDevice);
  ASSERT_EQ(cuMemAlloc_v2(&first, kDevice / 4 * 3), CUDA_SUCCESS);
  EXPECT_EQ(cuMemAlloc_v2(&second, kDevice / 2), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(Free(), kDevice / 4);
  ASSERT_EQ(cuMemFree_v2(first), CUDA_SUCCESS);
  EXPECT_EQ(cuMemAlloc_v2(&second, kDevice / 2), CUDA_SUCCESS);
  EXPECT_EQ(cuMemFree_v2(second), CUDA_SUCCESS);
}

TEST_F(CudaSimCheckpointTest, SwappedOutMemoryComesBackAsItWas) {
  CUdeviceptr memory = 0;
  ASSERT_EQ(cuMemAlloc_v2(&memory, kDevice / 2), CUDA_SUCCESS);
  uint64_t value = 42;
  ASSERT_EQ(cuMemcpyAsync(memory, reinterpret_cast<uintptr_t>(&value), sizeof value, stream_),
            CUDA_SUCCESS);
  const int self = getpid();
  EXPECT_EQ(State(), CU_PROCESS_STATE_RUNNING);
  EXPECT_EQ(cuCheckpointProcessCheckpoint(self, nullptr), CUDA_ERROR_ILLEGAL_STATE);
  ASSERT_EQ(cuCheckpointProcessLock(self, nullptr), CUDA_SUCCESS);
  ASSERT_EQ(cuCheckpointProcessCheckpoint(self, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(State(), CU_PROCESS_STATE_CHECKPOINTED);
  EXPECT_EQ(cuCheckpointProcessUnlock(self, nullptr), CUDA_ERROR_ILLEGAL_STATE);
  std::atomic<bool> read{false};
  std::thread waits([&] {
    CUcontext context = nullptr;
    cuDevicePrimaryCtxRetain(&context, 0);
    cuCtxSetCurrent(context);
    value = 0;
    cuMemcpyAsync(reinterpret_cast<uintptr_t>(&value), memory, sizeof value, stream_);
    read = true;
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_FALSE(read.load()) << "a call of a process that is locked";
  ASSERT_EQ(cuCheckpointProcessRestore(self, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(State(), CU_PROCESS_STATE_LOCKED);
  EXPECT_FALSE(read.load());
  ASSERT_EQ(cuCheckpointProcessUnlock(self, nullptr), CUDA_SUCCESS);
  waits.join();
  EXPECT_EQ(value, 42U);
  EXPECT_EQ(cuMemFree_v2(memory), CUDA_SUCCESS);
}

TEST_F(CudaSimCheckpointTest, AProcessWhoseWorkDoesNotEndIsNotLocked) {
  std::atomic<bool> go{false};
  ASSERT_EQ(cuLaunchHostFunc(
                stream_,
                [](void* flag) {
                  while (!static_cast<std::atomic<bool>*>(flag)->load()) std::this_thread::yield();
                },
                &go),
            CUDA_SUCCESS);
  CUcheckpointLockArgs patience{};
  patience.timeoutMs = 20;
  EXPECT_EQ(cuCheckpointProcessLock(getpid(), &patience), CUDA_ERROR_NOT_READY);
  EXPECT_EQ(State(), CU_PROCESS_STATE_RUNNING);
  go = true;
  EXPECT_EQ(cuStreamSynchronize(stream_), CUDA_SUCCESS);
}

// The devices are those of this run alone.
class SharedDevices : public testing::Environment {
 public:
  void SetUp() override {
    setenv("CUDA_SIM_MEMORY", std::to_string(kDevice).c_str(), 1);
    setenv("CUDA_SIM_KEY", std::to_string(getpid() + 0x10000000).c_str(), 1);
  }
  void TearDown() override {
    const int id = shmget(getpid() + 0x10000000, 0, 0);
    if (id >= 0) shmctl(id, IPC_RMID, nullptr);
  }
};
const testing::Environment* const kShared =
    testing::AddGlobalTestEnvironment(new SharedDevices);  // gtest's own

}  // namespace
