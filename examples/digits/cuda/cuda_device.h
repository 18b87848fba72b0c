// A GPU as a Device: its memory, its streams, and the kernels of kernels.h.
#ifndef DEJA_EXAMPLES_DIGITS_CUDA_CUDA_DEVICE_H_
#define DEJA_EXAMPLES_DIGITS_CUDA_CUDA_DEVICE_H_

#include <cstdint>
#include <memory>

#include "../model/device.h"
#include "driver.h"
#include "kernels.h"

namespace digits {

class CudaDevice final : public Device {
 public:
  explicit CudaDevice(int number);

  bool is_host() const override { return false; }
  void Enter() const override;

  void* Allocate(size_t bytes) override;
  void Free(void* memory) override;

  Stream stream() const override { return stream_; }
  Stream NewStream() override;
  Event NewEvent() override;
  void Record(Event event, Stream stream) override;
  void Wait(Stream stream, Event event) override;

  void CopyIn(void* to, const void* from, size_t bytes) override;
  void CopyOut(void* to, const void* from, size_t bytes) override;
  void Copy(void* to, const void* from, size_t bytes) override;

  std::unique_ptr<Layer> MakeDense(const char* name, size_t inputs, size_t outputs,
                                   Activation activation) override;
  std::unique_ptr<Layer> MakeConvolution(const char* name, size_t side, size_t in_channels,
                                         size_t out_channels) override;
  std::unique_ptr<Layer> MakeMaxPool(const char* name, size_t side, size_t channels) override;
  std::unique_ptr<Layer> MakeDropout(const char* name, size_t inputs, float probability) override;

  void Loss(size_t batch, const float* logits, const int32_t* labels, const float* weights,
            float scale, float* gradient, float* terms) override;
  void Update(const AdamStep& step) override;
  void Zero(float* values, size_t count) override;
  void Add(const float* from, float* to, size_t count) override;
  void FlipBits(float* value, uint32_t bits, Stream stream) override;

  // Puts a kernel of kernels.h on stream(), or on another stream.
  template <class Kernel>
  void Run(const Kernel& kernel) {
    RunOn(stream_, kernel);
  }

 private:
  struct Functions {
#define DIGITS_FUNCTION(name, Kernel) CUfunction name = nullptr;
    DIGITS_KERNELS(DIGITS_FUNCTION)
#undef DIGITS_FUNCTION
  };

#define DIGITS_RUN(name, Kernel)                                   \
  void RunOn(Stream stream, const kernels::Kernel& kernel) {       \
    Launch(functions_.name, #name, kernel.count, &kernel, stream); \
  }
  DIGITS_KERNELS(DIGITS_RUN)
#undef DIGITS_RUN
  void Launch(CUfunction function, const char* name, uint32_t count, const void* kernel,
              Stream stream);

  const CudaDriver& driver_;
  CUcontext context_ = nullptr;
  Stream stream_ = nullptr;
  Functions functions_;
};

}  // namespace digits

#endif  // DEJA_EXAMPLES_DIGITS_CUDA_CUDA_DEVICE_H_
