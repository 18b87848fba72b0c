#include "preload/cuda/cuda_device.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "tests/fakes/cuda/cuda_sim.h"
#include "tests/support/expected_leaks.h"
#include "tests/unit/preload/cuda/simulated_contexts.h"

// A device and what its driver hands out live as long as the process.
DEJA_EXPECTED_LEAKS("leak:libcuda.so\nleak:CudaDevice\nleak:BufferPool\n")

namespace deja::preload {
namespace {

constexpr size_t kBytes = 1000;

// What a read brought.
struct Seen {
  std::string bytes;
  std::atomic<int> times{0};
};

class CudaDeviceTest : public SimulatedContexts {
 protected:
  static char* Memory() {
    CUdeviceptr memory = 0;
    EXPECT_EQ(cuMemAlloc_v2(&memory, kBytes), CUDA_SUCCESS);
    return reinterpret_cast<char*>(static_cast<uintptr_t>(memory));
  }
  // Fills memory with `value`, when the stream reaches it.
  static void Fill(char* memory, char value, CUstream stream) {
    struct Work {
      char* memory;
      char value;
    };
    auto run = [](void* data) {
      auto* work = static_cast<Work*>(data);
      std::memset(cusim_backing(work->memory), work->value, kBytes);
      delete work;
    };
    ASSERT_EQ(cuLaunchHostFunc(stream, run, new Work{memory, value}), CUDA_SUCCESS);
  }
  DeviceAnswer Read(const void* memory, CUstream stream, Seen& seen, uint64_t bytes = kBytes) {
    return device_.Read(
        memory, bytes, reinterpret_cast<uint64_t>(stream),
        [](DeviceAnswer, std::span<const std::byte> came, void* context) {
          auto* to = static_cast<Seen*>(context);
          to->bytes.assign(reinterpret_cast<const char*>(came.data()), came.size());
          ++to->times;
        },
        &seen);
  }

  // Its thread goes on for good.
  CudaDevice& device_ = *new CudaDevice(*FindCudaDriver());
};

// What the kernel says of the mapping that holds `address`: "rd wr mr mw me dc".
std::string FlagsOf(const void* address) {
  std::ifstream maps("/proc/self/smaps");
  bool here = false;
  for (std::string line; std::getline(maps, line);) {
    unsigned long from = 0;
    unsigned long to = 0;
    if (std::sscanf(line.c_str(), "%lx-%lx ", &from, &to) == 2)
      here = reinterpret_cast<unsigned long>(address) - from < to - from;
    else if (here && line.starts_with("VmFlags:"))
      return line;
  }
  return {};
}

TEST(BufferPoolTest, WaitsForFilesInUseForTheGivenTime) {
  constexpr uint64_t kOne = uint64_t{64} << 10;
  std::atomic<uint32_t> busy{1};
  BufferPool impatient(kOne, nullptr, busy);
  BufferPool patient(kOne, nullptr, busy);
  BufferPool::Buffer* used[] = {impatient.Take(1), patient.Take(1)};
  ASSERT_NE(used[0], nullptr);
  ASSERT_NE(used[1], nullptr);
  BufferPool::SetPatience(1);
  EXPECT_EQ(impatient.Take(1), nullptr);
  BufferPool::SetPatience(BufferPool::kPatienceMs);
  std::thread later([&] {
    SleepMicroseconds(100000);
    BufferPool::GiveBack(used[1]);
  });
  EXPECT_EQ(patient.Take(1), used[1]);
  later.join();
}

TEST_F(CudaDeviceTest, ForkedChildrenDoNotShareWhatDevicesWriteTo) {
  EXPECT_NE(FlagsOf(device_.NewGate()).find(" dc"), std::string::npos);
}

TEST_F(CudaDeviceTest, AHeldStreamNeedsNoHostFunction) {
  Gate* gate = device_.NewGate();
  ASSERT_NE(gate, nullptr);
  const int before = cusim_host_functions();
  ASSERT_EQ(device_.Hold(reinterpret_cast<uint64_t>(stream_), *gate), DeviceAnswer::kTaken);
  EXPECT_EQ(cusim_host_functions(), before);
  gate->Open();
  EXPECT_EQ(cuStreamSynchronize(stream_), CUDA_SUCCESS);
}

TEST_F(CudaDeviceTest, SaysWhenAStreamHasDoneItsWork) {
  Gate* gate = device_.NewGate();
  ASSERT_NE(gate, nullptr);
  ASSERT_EQ(device_.Hold(reinterpret_cast<uint64_t>(stream_), *gate), DeviceAnswer::kTaken);
  Seen seen;
  const auto use = [](DeviceAnswer answer, std::span<const std::byte> came, void* context) {
    EXPECT_EQ(answer, DeviceAnswer::kTaken);
    EXPECT_TRUE(came.empty());
    ++static_cast<Seen*>(context)->times;
  };
  ASSERT_EQ(device_.Notify(reinterpret_cast<uint64_t>(stream_), use, &seen), DeviceAnswer::kTaken);
  EXPECT_FALSE(device_.Drain(50));
  EXPECT_EQ(seen.times, 0);
  gate->Open();
  EXPECT_TRUE(device_.Drain(10000));
  EXPECT_EQ(seen.times, 1);
}

TEST_F(CudaDeviceTest, AHeldStreamGoesOnWhenItsGateIsOpened) {
  Gate* gate = device_.NewGate();
  ASSERT_NE(gate, nullptr);
  CUstream second = nullptr;
  ASSERT_EQ(cuStreamCreate(&second, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
  char* memory = Memory();
  Fill(memory, 'a', stream_);
  ASSERT_EQ(device_.Hold(reinterpret_cast<uint64_t>(stream_), *gate), DeviceAnswer::kTaken);
  Seen behind;
  Seen beside;
  ASSERT_EQ(Read(memory, stream_, behind), DeviceAnswer::kTaken);
  ASSERT_EQ(Read(Memory(), second, beside), DeviceAnswer::kTaken);
  ASSERT_EQ(cuStreamSynchronize(second), CUDA_SUCCESS);
  // Neither waits for the one that is held.
  device_.TakeWhatCame(10000);
  EXPECT_EQ(beside.times, 1);
  EXPECT_EQ(behind.times, 0);
  gate->Open();
  ASSERT_EQ(cuStreamSynchronize(stream_), CUDA_SUCCESS);
  device_.TakeWhatCame(10000);
  EXPECT_EQ(behind.times, 1);
  EXPECT_EQ(behind.bytes, std::string(kBytes, 'a'));
}

TEST_F(CudaDeviceTest, MemoryIsKnownByItsKind) {
  void* pinned = nullptr;
  CUdeviceptr managed = 0;
  int host = 0;
  ASSERT_EQ(cuMemHostAlloc(&pinned, 64, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuMemAllocManaged(&managed, 64, CU_MEM_ATTACH_GLOBAL), CUDA_SUCCESS);
  EXPECT_EQ(device_.KindOf(&host), MemoryKind::kHost);
  EXPECT_EQ(device_.KindOf(pinned), MemoryKind::kPinned);
  EXPECT_EQ(device_.KindOf(Memory() + 10), MemoryKind::kDevice);
  EXPECT_EQ(device_.KindOf(reinterpret_cast<void*>(managed)), MemoryKind::kManaged);
}

TEST_F(CudaDeviceTest, AReadSeesTheStreamsEarlierWorkAndNotItsLaterWork) {
  for (CUstream stream : {stream_, CUstream{nullptr}, CU_STREAM_PER_THREAD}) {
    char* memory = Memory();
    Seen seen[20];
    for (int i = 0; i < 20; ++i) {
      Fill(memory, static_cast<char>('a' + i), stream);
      ASSERT_EQ(Read(memory, stream, seen[i]), DeviceAnswer::kTaken);
    }
    ASSERT_TRUE(device_.Drain(60000));
    for (int i = 0; i < 20; ++i)
      EXPECT_EQ(seen[i].bytes, std::string(kBytes, static_cast<char>('a' + i)));
  }
}

TEST_F(CudaDeviceTest, PinnedAndManagedMemoryIsReadInOrderToo) {
  void* pinned = nullptr;
  CUdeviceptr managed = 0;
  ASSERT_EQ(cuMemHostAlloc(&pinned, kBytes, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuMemAllocManaged(&managed, kBytes, CU_MEM_ATTACH_GLOBAL), CUDA_SUCCESS);
  for (char* memory : {static_cast<char*>(pinned), reinterpret_cast<char*>(managed)}) {
    Seen seen;
    Fill(memory, 'x', stream_);
    ASSERT_EQ(Read(memory, stream_, seen), DeviceAnswer::kTaken);
    Fill(memory, 'y', stream_);
    ASSERT_TRUE(device_.Drain(60000));
    EXPECT_EQ(seen.bytes, std::string(kBytes, 'x'));
  }
}

TEST_F(CudaDeviceTest, AStreamOfAnotherContextIsServedThereAndTheCurrentOneKept) {
  CUstream other = nullptr;
  CUcontext current = nullptr;
  ASSERT_EQ(cuCtxSetCurrent(contexts_[1]), CUDA_SUCCESS);
  ASSERT_EQ(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
  ASSERT_EQ(cuCtxSetCurrent(contexts_[0]), CUDA_SUCCESS);
  char* memory = Memory();
  Seen here;
  Seen there;
  Fill(memory, 'h', stream_);
  ASSERT_EQ(Read(memory, stream_, here), DeviceAnswer::kTaken);
  ASSERT_TRUE(device_.Drain(60000));  // its event must not be used for the other context
  Fill(memory, 't', other);
  ASSERT_EQ(Read(memory, other, there), DeviceAnswer::kTaken);
  ASSERT_TRUE(device_.Drain(60000));
  EXPECT_EQ(here.bytes, std::string(kBytes, 'h'));
  EXPECT_EQ(there.bytes, std::string(kBytes, 't'));
  ASSERT_EQ(cuCtxGetCurrent(&current), CUDA_SUCCESS);
  EXPECT_EQ(current, contexts_[0]);
  // A thread without a context has one only for the call.
  std::thread([&] {
    Seen seen;
    EXPECT_EQ(Read(memory, other, seen), DeviceAnswer::kTaken);
    EXPECT_EQ(cuCtxGetCurrent(&current), CUDA_SUCCESS);
    EXPECT_EQ(Read(memory, nullptr, seen), DeviceAnswer::kFailed);
    EXPECT_TRUE(device_.Drain(60000));
  }).join();
  EXPECT_EQ(current, nullptr);
}

TEST_F(CudaDeviceTest, ACaptureIsLeftAlone) {
  const int broken = cusim_broken_captures();
  char* memory = Memory();
  Seen before;
  Seen during;
  Fill(memory, 'b', stream_);
  ASSERT_EQ(Read(memory, stream_, before), DeviceAnswer::kTaken);
  CUstream blocking = nullptr;
  CUgraph graph = nullptr;
  ASSERT_EQ(cuStreamCreate(&blocking, CU_STREAM_DEFAULT), CUDA_SUCCESS);
  for (CUstream captured : {stream_, blocking}) {
    ASSERT_EQ(cuStreamBeginCapture_v2(captured, CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_SUCCESS);
    EXPECT_EQ(Read(memory, captured, during), DeviceAnswer::kCapturing);
    ASSERT_TRUE(device_.Drain(60000));  // its thread asks events meanwhile
    EXPECT_EQ(cuStreamEndCapture(captured, &graph), CUDA_SUCCESS);
  }
  EXPECT_EQ(before.bytes, std::string(kBytes, 'b'));
  EXPECT_EQ(during.times, 0);
  EXPECT_EQ(cusim_broken_captures(), broken);
  // The mode is the thread's own again.
  CUevent event = nullptr;
  ASSERT_EQ(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING), CUDA_SUCCESS);
  ASSERT_EQ(cuStreamBeginCapture_v2(stream_, CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_SUCCESS);
  EXPECT_EQ(cuEventQuery(event), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  EXPECT_EQ(cuStreamEndCapture(stream_, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
}

TEST_F(CudaDeviceTest, AWriteIsInTheOrderOfItsStream) {
  char* memory = Memory();
  Seen first;
  Seen second;
  auto make = [](std::span<std::byte> bytes, void* value) {
    std::memset(bytes.data(), *static_cast<char*>(value), bytes.size());
    return true;
  };
  char value = 'w';
  Fill(memory, 'f', stream_);
  ASSERT_EQ(Read(memory, stream_, first), DeviceAnswer::kTaken);
  ASSERT_EQ(device_.Write(memory, kBytes, reinterpret_cast<uint64_t>(stream_), make, &value),
            DeviceAnswer::kTaken);
  ASSERT_EQ(Read(memory, stream_, second), DeviceAnswer::kTaken);
  Fill(memory, 'g', stream_);
  ASSERT_TRUE(device_.Drain(60000));
  EXPECT_EQ(first.bytes, std::string(kBytes, 'f'));
  EXPECT_EQ(second.bytes, std::string(kBytes, 'w'));
  auto refuse = [](std::span<std::byte>, void*) { return false; };
  EXPECT_EQ(device_.Write(memory, kBytes, reinterpret_cast<uint64_t>(stream_), refuse, nullptr),
            DeviceAnswer::kFailed);
}

// What the launches of a captured read brought.
struct Launches {
  std::mutex mutex;
  std::vector<char> values;  // one a launch; 0: the bytes are not all the same
  int overlapped = 0;

  static void Use(DeviceAnswer answer, std::span<const std::byte> bytes, void* context) {
    auto& to = *static_cast<Launches*>(context);
    std::lock_guard hold(to.mutex);
    if (answer == DeviceAnswer::kOverlapped) ++to.overlapped;
    if (answer != DeviceAnswer::kTaken) return;
    const auto first = static_cast<char>(bytes[0]);
    const bool same = std::all_of(bytes.begin(), bytes.end(),
                                  [&](std::byte byte) { return static_cast<char>(byte) == first; });
    to.values.push_back(same ? first : '\0');
  }
};

TEST_F(CudaDeviceTest, ACapturedReadSeesWhatEachLaunchHas) {
  char* memory = Memory();
  for (LaunchUse when : {LaunchUse::kLater, LaunchUse::kInNode}) {
    Launches launches;
    ASSERT_EQ(cuStreamBeginCapture_v2(stream_, CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_SUCCESS);
    EXPECT_TRUE(device_.IsCaptured(reinterpret_cast<uint64_t>(stream_)));
    ASSERT_EQ(device_.ReadAtLaunches(memory, kBytes, reinterpret_cast<uint64_t>(stream_), 1,
                                     &Launches::Use, &launches, when),
              DeviceAnswer::kTaken);
    CUgraph graph = nullptr;
    CUgraphExec exec = nullptr;
    ASSERT_EQ(cuStreamEndCapture(stream_, &graph), CUDA_SUCCESS);
    ASSERT_EQ(cuGraphInstantiateWithFlags(&exec, graph, 0), CUDA_SUCCESS);
    for (int i = 0; i < 50; ++i) {
      Fill(memory, static_cast<char>('0' + i), stream_);
      ASSERT_EQ(cuGraphLaunch(exec, stream_), CUDA_SUCCESS);
    }
    Fill(memory, 'x', stream_);
    ASSERT_EQ(cuStreamSynchronize(stream_), CUDA_SUCCESS);
    ASSERT_TRUE(device_.Drain(60000));
    ASSERT_EQ(launches.values.size(), 50U);
    for (int i = 0; i < 50; ++i)
      EXPECT_EQ(launches.values[static_cast<size_t>(i)], static_cast<char>('0' + i));
    EXPECT_EQ(launches.overlapped, 0);
  }
}

// Instantiates a graph with a read twice, and launches both on two streams. The memory is so large
// that they run at the same time if they can.
void LaunchTwoAtATime(CudaDevice& device, CUstream stream, int rounds, Launches& launches) {
  constexpr size_t kLarge = size_t{16} << 20;
  CUdeviceptr memory = 0;
  ASSERT_EQ(cuMemAlloc_v2(&memory, kLarge), CUDA_SUCCESS);
  CUstream other = nullptr;
  ASSERT_EQ(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
  ASSERT_EQ(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_SUCCESS);
  ASSERT_EQ(device.ReadAtLaunches(reinterpret_cast<void*>(memory), kLarge,
                                  reinterpret_cast<uint64_t>(stream), 1, &Launches::Use, &launches,
                                  LaunchUse::kLater),
            DeviceAnswer::kTaken);
  CUgraph graph = nullptr;
  CUgraphExec execs[2] = {};
  ASSERT_EQ(cuStreamEndCapture(stream, &graph), CUDA_SUCCESS);
  for (CUgraphExec& exec : execs)
    ASSERT_EQ(cuGraphInstantiateWithFlags(&exec, graph, 0), CUDA_SUCCESS);
  for (int i = 0; i < rounds; ++i) {
    ASSERT_EQ(cuGraphLaunch(execs[0], stream), CUDA_SUCCESS);
    ASSERT_EQ(cuGraphLaunch(execs[1], other), CUDA_SUCCESS);
  }
  ASSERT_EQ(cuStreamSynchronize(stream), CUDA_SUCCESS);
  ASSERT_EQ(cuStreamSynchronize(other), CUDA_SUCCESS);
  ASSERT_TRUE(device.Drain(60000));
}

TEST_F(CudaDeviceTest, LaunchesThatWouldRunAtTheSameTimeTakeTurns) {
  constexpr int kRounds = 10;
  Launches launches;
  LaunchTwoAtATime(device_, stream_, kRounds, launches);
  EXPECT_EQ(launches.values.size(), 2U * kRounds);
  EXPECT_EQ(launches.overlapped, 0);
}

TEST_F(CudaDeviceTest, WithoutTurnsLaunchesThatRunAtTheSameTimeAreNoticed) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "what is tested is a race: two nodes write one buffer";
#endif
  static CudaDriver old_driver;
  old_driver = *FindCudaDriver();
  old_driver.cuEventRecordWithFlags = nullptr;
  static CudaDevice device(old_driver);
  constexpr int kRounds = 10;
  Launches launches;
  LaunchTwoAtATime(device, stream_, kRounds, launches);
  EXPECT_EQ(launches.values.size() + static_cast<size_t>(launches.overlapped), 2U * kRounds);
  EXPECT_GT(launches.overlapped, 0);
}

TEST_F(CudaDeviceTest, ACapturedWriteBringsSomethingNewAtEachLaunch) {
  char* memory = Memory();
  char next = 'a';
  auto make = [](std::span<std::byte> bytes, void* value) {
    std::memset(bytes.data(), (*static_cast<char*>(value))++, bytes.size());
    return true;
  };
  ASSERT_EQ(cuStreamBeginCapture_v2(stream_, CU_STREAM_CAPTURE_MODE_RELAXED), CUDA_SUCCESS);
  ASSERT_EQ(
      device_.WriteAtLaunches(memory, kBytes, reinterpret_cast<uint64_t>(stream_), 1, make, &next),
      DeviceAnswer::kTaken);
  CUgraph graph = nullptr;
  CUgraphExec exec = nullptr;
  ASSERT_EQ(cuStreamEndCapture(stream_, &graph), CUDA_SUCCESS);
  ASSERT_EQ(cuGraphInstantiateWithFlags(&exec, graph, 0), CUDA_SUCCESS);
  Seen seen[10];
  for (Seen& one : seen) {
    ASSERT_EQ(cuGraphLaunch(exec, stream_), CUDA_SUCCESS);
    ASSERT_EQ(Read(memory, stream_, one), DeviceAnswer::kTaken);
  }
  ASSERT_TRUE(device_.Drain(60000));
  for (int i = 0; i < 10; ++i)
    EXPECT_EQ(seen[i].bytes, std::string(kBytes, static_cast<char>('a' + i)));
}

TEST_F(CudaDeviceTest, NodesAreOnlyForStreamsThatAreCaptured) {
  Launches launches;
  EXPECT_FALSE(device_.IsCaptured(reinterpret_cast<uint64_t>(stream_)));
  EXPECT_EQ(device_.ReadAtLaunches(Memory(), kBytes, reinterpret_cast<uint64_t>(stream_), 1,
                                   &Launches::Use, &launches, LaunchUse::kLater),
            DeviceAnswer::kCapturing);
  EXPECT_TRUE(device_.Drain(0));
}

TEST_F(CudaDeviceTest, ABufferTooLargeForItsMemoryIsRefused) {
  Seen seen;
  EXPECT_EQ(Read(Memory(), stream_, seen, 2 * CudaDevice::kMaxPinnedBytes),
            DeviceAnswer::kNoMemory);
  EXPECT_EQ(seen.times, 0);
}

}  // namespace
}  // namespace deja::preload
