// How long a program's stream is busy with the digest of a buffer on a GPU, against a copy of the
// same bytes on the device: one line for each type and size, `ratio` being bandwidth over
// bandwidth. Exits 77 where there is no GPU.
//
//   digest_bandwidth [ROUNDS]
#include <dlfcn.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "digest/digest.h"
#include "preload/cuda/cuda_device.h"

namespace {

using deja::digest::TensorDigest;
using deja::preload::CudaDevice;
using deja::preload::CudaDriver;
using deja::preload::DeviceAnswer;

// What Deja itself does not call.
struct Extra {
  CUresult (*cuInit)(unsigned int) = nullptr;
  CUresult (*cuDevicePrimaryCtxRetain)(CUcontext*, CUdevice) = nullptr;
  CUresult (*cuCtxSetCurrent)(CUcontext) = nullptr;
  CUresult (*cuEventSynchronize)(CUevent) = nullptr;
  CUresult (*cuEventElapsedTime)(float*, CUevent, CUevent) = nullptr;
};

template <typename Function>
bool Find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  return function != nullptr;
}

void Check(CUresult result, const char* what) {
  if (result == CUDA_SUCCESS) return;
  std::fprintf(stderr, "%s returned error %d\n", what, static_cast<int>(result));
  std::exit(1);
}

class Timer {
 public:
  Timer(const CudaDriver& driver, const Extra& extra, CUstream stream)
      : driver_(driver), extra_(extra), stream_(stream) {
    for (CUevent& event : events_)
      Check(driver.cuEventCreate(&event, CU_EVENT_DEFAULT), "cuEventCreate");
  }
  // Milliseconds of the stream for one of `rounds` calls: the median of five tries.
  template <typename Work>
  double Milliseconds(int rounds, const Work& work) {
    std::vector<float> tries;
    for (int i = 0; i < 5; ++i) {
      Check(driver_.cuEventRecord(events_[0], stream_), "cuEventRecord");
      for (int round = 0; round < rounds; ++round) work();
      Check(driver_.cuEventRecord(events_[1], stream_), "cuEventRecord");
      Check(extra_.cuEventSynchronize(events_[1]), "cuEventSynchronize");
      float time = 0;
      Check(extra_.cuEventElapsedTime(&time, events_[0], events_[1]), "cuEventElapsedTime");
      tries.push_back(time / static_cast<float>(rounds));
    }
    std::nth_element(tries.begin(), tries.begin() + 2, tries.end());
    return static_cast<double>(tries[2]);
  }

 private:
  const CudaDriver& driver_;
  const Extra& extra_;
  CUstream stream_;
  CUevent events_[2] = {};
};

void Measure(const CudaDriver& driver, const Extra& extra, uint64_t bytes, int rounds) {
  auto& device = *new CudaDevice(driver);  // its thread goes on for good
  CUstream stream = nullptr;
  CUdeviceptr from = 0;
  CUdeviceptr to = 0;
  Check(driver.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
  Check(driver.cuMemAlloc_v2(&from, bytes), "cuMemAlloc");
  Check(driver.cuMemAlloc_v2(&to, bytes), "cuMemAlloc");
  device.PrepareDigests();
  Timer timer(driver, extra, stream);
  auto copy = [&] { Check(driver.cuMemcpyAsync(to, from, bytes, stream), "cuMemcpyAsync"); };
  timer.Milliseconds(rounds, copy);  // warm
  for (uint32_t dtype : {7U, 9U, 6U, 10U, 8U, 4U, 1U, 255U}) {
    auto digest = [&] {
      const DeviceAnswer answer = device.Digest(
          reinterpret_cast<const void*>(from), bytes, dtype, reinterpret_cast<uint64_t>(stream),
          [](DeviceAnswer, const TensorDigest&, void*) {}, nullptr);
      if (answer != DeviceAnswer::kTaken) Check(CUDA_ERROR_INVALID_VALUE, "Digest");
    };
    timer.Milliseconds(1, digest);
    const double digested = timer.Milliseconds(rounds, digest);
    const double copied = timer.Milliseconds(rounds, copy);
    const double gigabytes = static_cast<double>(bytes) / 1e6;
    std::printf("%-10s %5llu MiB  digest %7.1f GB/s  copy %7.1f GB/s  ratio %.2f\n",
                deja::digest::DTypeName(dtype), static_cast<unsigned long long>(bytes >> 20),
                gigabytes / digested, gigabytes / copied, copied / digested);
    device.Drain(60000);
  }
  Check(driver.cuMemFree_v2(from), "cuMemFree");
  Check(driver.cuMemFree_v2(to), "cuMemFree");
}

}  // namespace

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::max(std::atoi(argv[1]), 1) : 20;
  void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
  const CudaDriver* driver = library == nullptr ? nullptr : deja::preload::FindCudaDriver();
  Extra extra;
  if (driver == nullptr || !Find(library, "cuInit", extra.cuInit) ||
      !Find(library, "cuDevicePrimaryCtxRetain", extra.cuDevicePrimaryCtxRetain) ||
      !Find(library, "cuCtxSetCurrent", extra.cuCtxSetCurrent) ||
      !Find(library, "cuEventSynchronize", extra.cuEventSynchronize) ||
      !Find(library, "cuEventElapsedTime", extra.cuEventElapsedTime) ||
      extra.cuInit(0) != CUDA_SUCCESS) {
    std::printf("there is no CUDA device here\n");
    return 77;
  }
  CUcontext context = nullptr;
  Check(extra.cuDevicePrimaryCtxRetain(&context, 0), "cuDevicePrimaryCtxRetain");
  Check(extra.cuCtxSetCurrent(context), "cuCtxSetCurrent");
  for (uint64_t mebibytes : {1, 16, 64, 512}) Measure(*driver, extra, mebibytes << 20, rounds);
  return 0;
}
