// Digests of device buffers, on the simulated driver: the same as those of the bytes, made by the
// kernels where that can be.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "digest/digest_sums.h"
#include "preload/cuda/cuda_device.h"
#include "tests/fakes/cuda/cuda_sim.h"
#include "tests/unit/preload/cuda/simulated_contexts.h"

namespace deja::preload {
namespace {

constexpr uint32_t kFloat32 = 7;
constexpr size_t kDigestedBytes = 200001;

struct SeenDigest {
  digest::TensorDigest digest;
  std::atomic<int> answer{-1};  // a DeviceAnswer
  std::atomic<int> times{0};
};

class CudaDigestsTest : public SimulatedContexts {
 protected:
  static CudaDevice& NewDevice(bool digests = true) {
    return *new CudaDevice(*FindCudaDriver(), digests);  // its thread goes on for good
  }
  static char* OnDevice(size_t bytes) {
    CUdeviceptr memory = 0;
    EXPECT_EQ(cuMemAlloc_v2(&memory, bytes), CUDA_SUCCESS);
    return reinterpret_cast<char*>(static_cast<uintptr_t>(memory));
  }
  static std::vector<std::byte> Random(size_t bytes, uint64_t seed) {
    std::mt19937_64 random(seed);
    std::vector<std::byte> made(bytes + sizeof(uint64_t));
    for (size_t i = 0; i < bytes; i += sizeof(uint64_t)) {
      const uint64_t word = random() & 0x3f3f3f3f3f3f3f3fu;  // finite numbers of every type
      std::memcpy(&made[i], &word, sizeof word);
    }
    made.resize(bytes);
    return made;
  }
  // Puts `bytes` there, when the stream comes to it.
  static void Put(char* memory, const std::vector<std::byte>& bytes, CUstream stream) {
    ASSERT_EQ(cuMemcpyAsync(reinterpret_cast<CUdeviceptr>(memory),
                            reinterpret_cast<CUdeviceptr>(bytes.data()), bytes.size(), stream),
              CUDA_SUCCESS);
  }
  static DeviceAnswer Digest(CudaDevice& device, const void* memory, uint64_t bytes, uint32_t dtype,
                             CUstream stream, SeenDigest& seen) {
    return device.Digest(
        memory, bytes, dtype, reinterpret_cast<uint64_t>(stream),
        [](DeviceAnswer answer, const digest::TensorDigest& digest, void* context) {
          auto& to = *static_cast<SeenDigest*>(context);
          to.digest = digest;
          to.answer = static_cast<int>(answer);
          ++to.times;
        },
        &seen);
  }
  static void ExpectDigest(const SeenDigest& seen, const std::vector<std::byte>& bytes,
                           uint32_t dtype) {
    EXPECT_EQ(seen.times, 1);
    EXPECT_EQ(seen.answer, static_cast<int>(DeviceAnswer::kTaken));
    const digest::TensorDigest want = digest::DigestTensor(bytes, dtype);
    EXPECT_EQ(seen.digest.hash, want.hash);
    EXPECT_EQ(seen.digest.stats.min, want.stats.min);
    EXPECT_EQ(seen.digest.stats.max, want.stats.max);
    EXPECT_EQ(seen.digest.stats.nan_count, want.stats.nan_count);
  }
  // The digest of that memory comes, by so many launches of kernels.
  void ExpectLaunches(CudaDevice& device, char* memory, size_t bytes, int launches) {
    const std::vector<std::byte> content = Random(bytes, bytes);
    Put(memory, content, stream_);
    SeenDigest seen;
    const int before = cusim_digest_launches();
    ASSERT_EQ(Digest(device, memory, bytes, kFloat32, stream_, seen), DeviceAnswer::kTaken);
    ASSERT_TRUE(device.Drain(60000));
    ExpectDigest(seen, content, kFloat32);
    EXPECT_EQ(cusim_digest_launches() - before, launches);
  }
};

TEST_F(CudaDigestsTest, AllTypesAreDigestedOnTheDevice) {
  CudaDevice& device = NewDevice();
  char* memory = OnDevice(kDigestedBytes);
  for (uint32_t dtype : {0U, 1U, 2U, 3U, 4U, 5U, 6U, 7U, 8U, 9U, 10U, 11U, 77U, 255U}) {
    const std::vector<std::byte> bytes = Random(kDigestedBytes, dtype);
    SeenDigest seen;
    const int before = cusim_digest_launches();
    Put(memory, bytes, stream_);
    ASSERT_EQ(Digest(device, memory, kDigestedBytes, dtype, stream_, seen), DeviceAnswer::kTaken);
    Put(memory, Random(kDigestedBytes, 1000), stream_);  // what comes behind is not seen
    ASSERT_TRUE(device.Drain(60000));
    ExpectDigest(seen, bytes, dtype);
    EXPECT_EQ(cusim_digest_launches(), before + 1);
  }
}

TEST_F(CudaDigestsTest, SmallTensorsAndOtherMemoryAreCopied) {
  CudaDevice& device = NewDevice();
  ExpectLaunches(device, OnDevice(1000), 1000, 0);
  void* pinned = nullptr;
  CUdeviceptr managed = 0;
  ASSERT_EQ(cuMemHostAlloc(&pinned, kDigestedBytes, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuMemAllocManaged(&managed, kDigestedBytes, CU_MEM_ATTACH_GLOBAL), CUDA_SUCCESS);
  ExpectLaunches(device, static_cast<char*>(pinned), kDigestedBytes, 0);
  ExpectLaunches(device, reinterpret_cast<char*>(managed), kDigestedBytes, 0);
  // Another device's: a kernel of this one might not reach it.
  ASSERT_EQ(cuCtxSetCurrent(contexts_[1]), CUDA_SUCCESS);
  char* far = OnDevice(kDigestedBytes);
  ASSERT_EQ(cuCtxSetCurrent(contexts_[0]), CUDA_SUCCESS);
  ExpectLaunches(device, far, kDigestedBytes, 0);
  ExpectLaunches(device, OnDevice(kDigestedBytes), kDigestedBytes, 1);
}

TEST_F(CudaDigestsTest, ALargeTensorGoesInPieces) {
  constexpr size_t kPiece = digest::kPieceBlocks * 1024;
  CudaDevice& device = NewDevice();
  ExpectLaunches(device, OnDevice(2 * kPiece + 5000), 2 * kPiece + 5000, 3);
}

TEST_F(CudaDigestsTest, ItCanBeSwitchedOff) {
  CudaDevice& device = NewDevice(false);
  device.PrepareDigests();
  ExpectLaunches(device, OnDevice(kDigestedBytes), kDigestedBytes, 0);
}

TEST_F(CudaDigestsTest, ADriverThatRefusesTheKernelsIsSaidOnce) {
  CudaDevice& device = NewDevice();
  ASSERT_EQ(setenv("CUDA_SIM_PTX", "no", 1), 0);
  testing::internal::CaptureStderr();
  char* memory = OnDevice(kDigestedBytes);
  ExpectLaunches(device, memory, kDigestedBytes, 0);
  ExpectLaunches(device, memory, kDigestedBytes, 0);
  ASSERT_EQ(unsetenv("CUDA_SIM_PTX"), 0);
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "deja: digests of device buffers are made on the host: cuModuleLoadData returned error "
            "218\n");
}

TEST_F(CudaDigestsTest, NothingIsLoadedOrLaunchedInACapture) {
  CudaDevice& device = NewDevice();
  const int broken = cusim_broken_captures();
  CUstream captured = nullptr;
  CUgraph graph = nullptr;
  char* memory = OnDevice(kDigestedBytes);
  ASSERT_EQ(cuStreamCreate(&captured, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
  ASSERT_EQ(cuStreamBeginCapture_v2(captured, CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_SUCCESS);
  SeenDigest seen;
  EXPECT_EQ(Digest(device, memory, kDigestedBytes, kFloat32, captured, seen),
            DeviceAnswer::kCapturing);
  // That of another stream is, although the capture forbids what makes it ready.
  ExpectLaunches(device, memory, kDigestedBytes, 1);
  EXPECT_EQ(cuStreamEndCapture(captured, &graph), CUDA_SUCCESS);
  EXPECT_EQ(cusim_broken_captures(), broken);
  EXPECT_EQ(seen.times, 0);
}

TEST_F(CudaDigestsTest, SeveralThreadsStreamsAndContexts) {
  CudaDevice& device = NewDevice();
  constexpr size_t kRounds = 20;
  auto work = [&](int number) {
    const uint64_t seed = uint64_t{100} * static_cast<uint64_t>(number);
    ASSERT_EQ(cuCtxSetCurrent(contexts_[number % 2]), CUDA_SUCCESS);
    CUstream stream = CU_STREAM_PER_THREAD;
    if (number != 3) {
      ASSERT_EQ(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
    }
    char* memory = OnDevice(kDigestedBytes);
    std::vector<SeenDigest> seen(kRounds);
    for (size_t i = 0; i < kRounds; ++i) {
      Put(memory, Random(kDigestedBytes, seed + i), stream);
      ASSERT_EQ(Digest(device, memory, kDigestedBytes, kFloat32, stream, seen[i]),
                DeviceAnswer::kTaken);
    }
    ASSERT_TRUE(device.Drain(60000));
    for (size_t i = 0; i < kRounds; ++i)
      ExpectDigest(seen[i], Random(kDigestedBytes, seed + i), kFloat32);
    ASSERT_EQ(cuCtxSetCurrent(nullptr), CUDA_SUCCESS);
  };
  std::thread threads[4];
  for (int i = 0; i < 4; ++i) threads[i] = std::thread(work, i);
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace deja::preload
